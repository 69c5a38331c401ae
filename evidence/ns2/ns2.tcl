# SPDX-License-Identifier: Apache-2.0
#
# What the ns-2 scripts share: arguments, a fabric with explicit routes, the
# TCP of the papers' simulations, and JSON. ns-2 computes its static routes in
# O(nodes^3); these fabrics are trees or nearly, so each router is given its
# routes and each host has one default route.

# Reads KEY=VALUE arguments over the defaults in `names`; refuses others.
proc arguments {names} {
    global argv
    array set value $names
    foreach word $argv {
        if {![regexp {^([a-z_]+)=(.+)$} $word -> key given] || ![info exists value($key)]} {
            puts stderr "unknown argument '$word'; known: [join [lsort [array names value]] ", "]"
            exit 2
        }
        set value($key) $given
    }
    return [array get value]
}

proc simulator {seed} {
    global ns defaultRNG
    $defaultRNG seed $seed
    set ns [new Simulator]
    Agent/rtProto/Static proc init-all {args} {}
    return $ns
}

# A link in both directions whose queues hold `limit` packets, the one being
# transmitted included (ns-2's DropTail refuses the packet that would make its
# queue `limit_` long, and the packet on the wire is not in the queue).
#
# A limit no queue reaches is `unlimited`.
set unlimited 1000000

proc connect {a b rate delay limit} {
    global ns
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $limit
    $ns queue-limit $b $a $limit
}

# A host: all it sends goes to its router, which learns the way back.
proc host {router rate delay} {
    global ns unlimited
    set node [$ns node]
    # No host port may lose a packet: the bottleneck is to be the only cause.
    connect $node $router $rate $delay $unlimited
    [$node entry] defaulttarget [[$ns link $node $router] head]
    route $router $node $router $node
    return $node
}

# At `router`, packets for `destination` leave by the link from `a` to `b`.
proc route {router destination a b} {
    global ns
    $router add-route [$destination node-addr] [[$ns link $a $b] head]
}

proc default_route {router next} {
    global ns
    [$router entry] defaulttarget [[$ns link $router $next] head]
}

# A one-way NewReno connection from `source` to `sink` with 1500-byte data
# packets (1460 of payload) and 40-byte ACKs, one for each packet.
proc newreno {source destination fid window} {
    global ns
    set tcp [new Agent/TCP/Newreno]
    $tcp set packetSize_ 1460
    $tcp set window_ $window
    $tcp set fid_ $fid
    set sink [new Agent/TCPSink]
    $ns attach-agent $source $tcp
    $ns attach-agent $destination $sink
    $ns connect $tcp $sink
    return $tcp
}

# The exponential variate of the given mean from the seeded default stream.
proc exponential {mean} {
    global defaultRNG
    return [expr {$mean * [$defaultRNG exponential]}]
}

proc json_object {pairs} {
    set members {}
    foreach {key value} $pairs {
        lappend members "\"$key\": $value"
    }
    return "{[join $members ", "]}"
}

proc json_list {values} {
    return "\[[join $values ", "]\]"
}

proc sum {values} {
    set total 0
    foreach value $values {
        set total [expr {$total + $value}]
    }
    return $total
}

proc mean {values} {
    if {[llength $values] == 0} { return 0.0 }
    return [expr {double([sum $values]) / [llength $values]}]
}

# The smallest value that at least `share` of the values do not exceed; of no values null.
proc quantile {values share} {
    if {[llength $values] == 0} { return null }
    set sorted [lsort -real $values]
    set rank [expr {int(ceil($share * [llength $sorted])) - 1}]
    return [lindex $sorted [expr {$rank < 0 ? 0 : $rank}]]
}

# Jain's index: 1 when all are equal, 1/n when one has everything; of no values null.
proc jain {values} {
    if {[llength $values] == 0} { return null }
    set squares {}
    foreach value $values {
        lappend squares [expr {double($value) * $value}]
    }
    set total [sum $values]
    return [expr {double($total) * $total / ([llength $values] * [sum $squares])}]
}

# The event loop's speed and the peak memory, as pairs for the report.
proc performance {wall hops} {
    set status [open /proc/self/status]
    regexp {VmHWM:\s+(\d+) kB} [read $status] -> kilobytes
    close $status
    return [list packet_hops $hops wall_s $wall \
        packet_hops_per_s [expr {$hops / $wall}] \
        peak_rss_bytes [expr {$kilobytes * 1024}]]
}
