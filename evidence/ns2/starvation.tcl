# SPDX-License-Identifier: Apache-2.0
#
# HCF §V-B, the FIFO switch: 400 long NewReno flows through one port, in ns-2:
#
#   ns evidence/ns2/starvation.tcl seed=1
#
# Fabric: 400 sender hosts and one UDP host -- left router -- right router --
# one receiver host. Host links 10 Gb/s with 12.5 us, the link between the
# routers 100 Mb/s with 25 us: 100 us there and back without queueing. The port
# left -> right holds 20 packets, the one in transmission included; no other
# port can overflow.
#
# Traffic: the flows start at uniform times in [0, 1) s and never end. UDP: a
# packet of 1500 bytes on the wire every 2.4 ms, 5 % of 100 Mb/s, the first at a
# uniform time in [0, 2.4) ms (udp_arrivals=poisson draws the gaps instead).
#
# Every packet takes 120 us of the bottleneck, and every sender answers an ACK
# after the same time, so what starves a flow is its phase within the 120 us:
# at 10 Gb/s an answer arrives 105.7 us after a slot has become free. Another
# speed of the host links, another delay or Poisson UDP change the result much,
# for ns-2 as for any simulator that is compared with it. karn=0 shows the other
# cause: timestamps of no size let every ACK of new data end the back-off, where
# Karn's rule keeps it until a packet that was sent once is acknowledged.
#
# Measures, over the last 10 of 180 s: a flow's packets are those its receiver
# got (duplicates too); the flow is starved when there were none, and one of the
# `starved_attempts` when its sender sent none either. `variance` is
# the population variance of the packets over the flows, `first_bin` the number
# of flows in the first of ten equal bins from 0 to the largest count. The
# longest silence is the longest time without a packet in the whole run, from
# 0 s, in steps of 0.1 s.

source [file join [file dirname [info script]] ns2.tcl]

array set arg [arguments {
    seed 1 flows 400 duration 180.0 measured 10.0 buffer 20 window 1000
    spread 1.0 overhead 0 minrto 0.2 maxrto 60 udp 0.05 udp_arrivals constant access 10e9
    karn 1
}]
Agent/TCP set overhead_ $arg(overhead)
Agent/TCP set minrto_ $arg(minrto)
Agent/TCP set maxrto_ $arg(maxrto)
if {!$arg(karn)} {
    Agent/TCP set timestamps_ true
    Agent/TCP set ts_resetRTO_ true
    Agent/TCP set ts_option_size_ 0
}

set rate 100e6
set silence_step 0.1
set ns [simulator $arg(seed)]
set left [$ns node]
set right [$ns node]
connect $left $right $rate 25us $arg(buffer)
$ns queue-limit $right $left $unlimited
default_route $left $right
default_route $right $left
set receiver [host $right $arg(access) 12.5us]

set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $left $right] $monitor

set agents {}
for {set i 0} {$i < $arg(flows)} {incr i} {
    set tcp [newreno [host $left $arg(access) 12.5us] $receiver 1 $arg(window)]
    $ns at [$defaultRNG uniform 0 $arg(spread)] "$tcp send -1"
    lappend agents $tcp
    set seen($tcp) 0
    set last_ack($tcp) 0.0
    set silence($tcp) 0.0
}

if {$arg(udp) > 0} {
    set udp [new Agent/UDP]
    $udp set packetSize_ 1500
    $udp set fid_ 2
    set null [new Agent/Null]
    $ns attach-agent [host $left $arg(access) 12.5us] $udp
    $ns attach-agent $receiver $null
    $ns connect $udp $null
    set udp_gap [expr {1500 * 8 / ($arg(udp) * $rate)}]
    proc send_udp {} {
        global ns arg udp udp_gap
        $udp send 1500
        set gap [expr {$arg(udp_arrivals) eq "poisson" ? [exponential $udp_gap] : $udp_gap}]
        $ns at [expr {[$ns now] + $gap}] send_udp
    }
    $ns at [$defaultRNG uniform 0 $udp_gap] send_udp
}

# ACKs are never lost, so the ACKs a sender got are the packets its receiver got.
proc watch {} {
    global ns agents seen last_ack silence silence_step
    set now [$ns now]
    foreach tcp $agents {
        set packets [$tcp set nackpack_]
        if {$packets != $seen($tcp)} {
            set seen($tcp) $packets
            set last_ack($tcp) $now
        } elseif {$now - $last_ack($tcp) > $silence($tcp)} {
            set silence($tcp) [expr {$now - $last_ack($tcp)}]
        }
    }
    $ns at [expr {$now + $silence_step}] watch
}

proc snapshot {} {
    global agents monitor received sent bytes drops timeouts
    foreach tcp $agents {
        set received($tcp) [$tcp set nackpack_]
        set sent($tcp) [$tcp set ndatapack_]
        set timeouts($tcp) [$tcp set nrexmit_]
    }
    set bytes [$monitor set bdepartures_]
    set drops [$monitor set pdrops_]
}

proc variance {values} {
    set center [mean $values]
    set squares {}
    foreach value $values {
        lappend squares [expr {($value - $center) ** 2}]
    }
    return [mean $squares]
}

# How many of `values` are below a tenth of their largest.
proc first_bin {values} {
    set edge [expr {[quantile $values 1.0] / 10.0}]
    set inside 0
    foreach value $values {
        incr inside [expr {$value < $edge}]
    }
    return $inside
}

proc starved {values} {
    set zero 0
    foreach value $values {
        incr zero [expr {$value == 0}]
    }
    return [expr {double($zero) / [llength $values]}]
}

proc finish {} {
    global arg rate agents monitor received sent bytes drops timeouts silence loop_start
    set wall [expr {([clock microseconds] - $loop_start) / 1e6}]
    set packets {}
    set attempts {}
    set all_timeouts 0
    set last_timeouts 0
    set silences {}
    foreach tcp $agents {
        lappend packets [expr {[$tcp set nackpack_] - $received($tcp)}]
        lappend attempts [expr {[$tcp set ndatapack_] - $sent($tcp)}]
        incr all_timeouts [$tcp set nrexmit_]
        incr last_timeouts [expr {[$tcp set nrexmit_] - $timeouts($tcp)}]
        lappend silences $silence($tcp)
    }
    set over_20 0
    foreach value $silences {
        incr over_20 [expr {$value > 20}]
    }
    puts [json_object [list \
        simulator {"ns-2"} scenario {"starvation"} seed $arg(seed) \
        variance [variance $packets] \
        starved [starved $packets] \
        starved_attempts [starved $attempts] \
        first_bin [first_bin $packets] \
        packets_max [quantile $packets 1.0] \
        utilization [expr {(([$monitor set bdepartures_] - $bytes) & 0xffffffff) * 8.0 / ($rate * $arg(measured))}] \
        drops [$monitor set pdrops_] \
        drops_measured [expr {[$monitor set pdrops_] - $drops}] \
        timeouts $all_timeouts \
        timeouts_measured $last_timeouts \
        silence_s [json_object [list mean [mean $silences] p50 [quantile $silences 0.5] \
            max [quantile $silences 1.0] over_20 [expr {double($over_20) / $arg(flows)}]]] \
        wall_s $wall]]
    exit 0
}

$ns at 0.0 {set loop_start [clock microseconds]}
$ns at $silence_step watch
$ns at [expr {$arg(duration) - $arg(measured)}] snapshot
$ns at $arg(duration) finish
$ns run
