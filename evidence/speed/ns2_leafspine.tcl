# SPDX-License-Identifier: Apache-2.0
#
# Leaf-spine in ns-2, for the speed of its event loop:
#
#   ns evidence/speed/ns2_leafspine.tcl seed=1
#
# 3 leaves with 48 hosts each at 1 Gb/s, 2 spines at 10 Gb/s, 5 us a link, so
# 40 us there and back between racks. Every switch port between leaf and spine
# holds 83 packets (125 kB), the one in transmission included; no host port can
# overflow. Host i of rack r sends to host i of rack r + 1 (mod 3) without end,
# from a uniform time in [0, 1) ms, by way of spine i mod 2 in both directions.
# So only the leaves' uplinks are overloaded: 24 flows of 1 Gb/s at 10 Gb/s.
#
# A packet that arrives takes four links and so does its ACK; a dropped one
# takes the first. What is under way at the end is not counted.

source [file join [file dirname [info script]] .. ns2 ns2.tcl]

array set arg [arguments {
    seed 1 racks 3 spines 2 hosts 48 duration 1.0 buffer 83 window 1000
}]

set ns [simulator $arg(seed)]
for {set s 0} {$s < $arg(spines)} {incr s} {
    set spine($s) [$ns node]
}
for {set r 0} {$r < $arg(racks)} {incr r} {
    set leaf($r) [$ns node]
    for {set s 0} {$s < $arg(spines)} {incr s} {
        connect $leaf($r) $spine($s) 10Gb 5us $arg(buffer)
    }
    for {set i 0} {$i < $arg(hosts)} {incr i} {
        set host($r,$i) [host $leaf($r) 1Gb 5us]
    }
}
for {set r 0} {$r < $arg(racks)} {incr r} {
    for {set i 0} {$i < $arg(hosts)} {incr i} {
        set via $spine([expr {$i % $arg(spines)}])
        route $via $host($r,$i) $via $leaf($r)
        for {set other 0} {$other < $arg(racks)} {incr other} {
            if {$other != $r} {
                route $leaf($other) $host($r,$i) $leaf($other) $via
            }
        }
    }
}

set agents {}
for {set r 0} {$r < $arg(racks)} {incr r} {
    for {set i 0} {$i < $arg(hosts)} {incr i} {
        set peer $host([expr {($r + 1) % $arg(racks)}],$i)
        set tcp [newreno $host($r,$i) $peer 1 $arg(window)]
        $ns at [$defaultRNG uniform 0 0.001] "$tcp send -1"
        lappend agents $tcp
    }
}

proc finish {} {
    global arg agents loop_start
    set wall [expr {([clock microseconds] - $loop_start) / 1e6}]
    set sent 0
    set received 0
    foreach tcp $agents {
        incr sent [$tcp set ndatapack_]
        incr received [$tcp set nackpack_]
    }
    set performance [performance $wall [expr {$sent + 7 * $received}]]
    puts [json_object [concat \
        [list simulator {"ns-2"} scenario {"leafspine"} seed $arg(seed)] $performance]]
    exit 0
}

$ns at 0.0 {set loop_start [clock microseconds]}
$ns at $arg(duration) finish
$ns run
