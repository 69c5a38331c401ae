# SPDX-License-Identifier: Apache-2.0
"""The laboratory: a scenario on real TCP, in network namespaces of this machine.

`plan` turns a scenario into namespaces, addresses and commands, without touching anything;
`fabric` builds and removes them; `schemes` says what stands on a port and `agent` runs it;
`traffic` and `tools` drive the hosts; `run` puts them together and gives the simulator's rows.
"""
