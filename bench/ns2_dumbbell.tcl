# SPDX-License-Identifier: Apache-2.0
#
# The dumbbell of the cross-check without its port monitor, for the speed of
# ns-2's event loop: ns bench/ns2_dumbbell.tcl [KEY=VALUE ...]

set argv [linsert $argv 0 monitor=0]
source [file join [file dirname [info script]] .. crosscheck dumbbell.tcl]
