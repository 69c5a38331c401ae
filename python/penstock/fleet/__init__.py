# SPDX-License-Identifier: Apache-2.0
"""What the agents of many hosts saw, as one page: which ports suffer, and where to begin.

sources      texts of metrics, from endpoints and files
readings     a table with a row for each port, by polars
verdict      what each port's timeouts cost, and what each cure would have saved at most
page         the page
canary       a part of the flows or hosts under a scheme, compared with the rest, and when to stop
canary_page  its page
"""
