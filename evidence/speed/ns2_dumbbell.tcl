# SPDX-License-Identifier: Apache-2.0
#
# The dumbbell of the demo, 1 Gb/s everywhere, without the port monitor of the
# cross-check, for the speed of ns-2's event loop:
#
#   ns evidence/speed/ns2_dumbbell.tcl seed=1

set argv [linsert $argv 0 monitor=0 access=1e9]
source [file join [file dirname [info script]] .. ns2 dumbbell.tcl]
