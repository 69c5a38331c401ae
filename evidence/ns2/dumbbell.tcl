# SPDX-License-Identifier: Apache-2.0
#
# SICC §5.1, elephants:mice 1:3, drop-tail and NewReno, in ns-2:
#
#   ns evidence/ns2/dumbbell.tcl seed=1
#
# Fabric: 80 sender hosts -- left router -- right router -- 80 receiver hosts,
# flow i from sender i to receiver i. The routers are joined by 1 Gb/s with 25 us
# of propagation, the hosts by 10 Gb/s with 12.5 us: 100 us there and back. The
# port left -> right holds 83 packets, the one in transmission included; no
# other port can overflow. ACKs (40 bytes) go back by the same links.
#
# The paper has 1 Gb/s everywhere (access=1e9, as in the demo and the benchmark).
# Then a sender's second packet of a pair reaches the router in the same instant
# as the next sender's first, and whatever a simulator does with ties decides who
# is dropped: in ns-2 the rounding of its clock. 10 Gb/s leaves no ties.
#
# Traffic: 20 elephants from hosts 0-19 start at 0 s. 60 mice from hosts 20-79
# open a new connection each at 0, 1, 2, 3 and 4 s and send 7 segments of 1460
# bytes (10 kB rounded up: ns-2 counts packets); a mouse of an earlier epoch
# that is still unfinished continues next to the new one. Within the elephants and
# within each epoch the starts are a Poisson process with a mean gap of 12 us
# (one 1500-byte packet at 1 Gb/s). The run ends at 5 s.
#
# Measures: the flow completion time is from the call to connect (SYN sent) to
# the ACK of the last segment at the sender. Drops are packets lost at the
# bottleneck (SYNs included). Timeouts are retransmission timeouts. `wall_s` is
# the event loop alone; monitor=0 leaves the measuring of the port out, for the
# benchmark. A packet that arrives takes three links and so does its ACK, a
# dropped one takes the first; what is under way at the end is not counted.

source [file join [file dirname [info script]] ns2.tcl]
source [file join [file dirname [info script]] window.tcl]

array set arg [arguments {
    seed 1 elephants 20 mice 60 epochs 5 every 1.0 duration 5.0 buffer 83 window 1000
    overhead 0 minrto 0.2 segments 7 access 10e9 monitor 1
    scheme none alpha 0.25 T 100e-6 M 10 alpha1 0.25 alpha2 0.5 tcp penstock
}]
Agent/TCP set overhead_ $arg(overhead)
Agent/TCP set minrto_ $arg(minrto)

# The schemes' thresholds are bytes, and so is their buffer: one that counts packets
# is full of handshakes in an incast, of which ns-2 sends no third packet.
if {$arg(scheme) ne "none"} {
    Queue/DropTail set queue_in_bytes_ true
    Queue/DropTail set mean_pktsize_ 1500
}

set rate 1e9
set packet_gap [expr {1500 * 8 / $rate}]
set ns [simulator $arg(seed)]
set left [$ns node]
set right [$ns node]
connect $left $right $rate 25us $arg(buffer)
$ns queue-limit $right $left $unlimited

set flows [expr {$arg(elephants) + $arg(mice)}]
default_route $left $right
default_route $right $left
for {set i 0} {$i < $flows} {incr i} {
    set sender($i) [host $left $arg(access) 12.5us]
    set receiver($i) [host $right $arg(access) 12.5us]
}

# Class monitors at the bottleneck: fid 1 elephants, fid 2 mice.
if {$arg(monitor)} {
    set monitor [$ns makeflowmon Fid]
    $ns attach-fmon [$ns link $left $right] $monitor
    $monitor set-bytes-integrator [set backlog [new Integrator]]
}

if {$arg(scheme) ne "none"} {
    control $arg(scheme) $left $right [expr {$arg(buffer) * 1500}] $rate 12.5e-6 [list \
        alpha $arg(alpha) T $arg(T) M $arg(M) alpha1 $arg(alpha1) alpha2 $arg(alpha2) \
        tcp $arg(tcp) offered $arg(window) segment 1460 data_end $arg(segments)]
}

set elephants {}
set at 0.0
for {set i 0} {$i < $arg(elephants)} {incr i} {
    set tcp [newreno $sender($i) $receiver($i) 1 $arg(window)]
    set at [expr {$at + [exponential $packet_gap]}]
    $ns at $at "$tcp send -1"
    lappend elephants $tcp
    controlled $tcp 0
}

# An ACK's way from receiver to sender: the links' delays and its transmissions.
set ack_path [expr {50e-6 + 40 * 8 * (1 / $rate + 2 / $arg(access))}]
set mice {}
set completion {}
for {set epoch 0} {$epoch < $arg(epochs)} {incr epoch} {
    set at [expr {$epoch * $arg(every)}]
    for {set i $arg(elephants)} {$i < $flows} {incr i} {
        set tcp [newreno $sender($i) $receiver($i) 2 $arg(window)]
        set at [expr {$at + [exponential $packet_gap]}]
        set started($tcp) $at
        $ns at $at "$tcp advanceby $arg(segments)"
        lappend mice $tcp
        controlled $tcp 1
    }
}

Agent/TCP instproc done {} {
    global ns started completion ack_path
    lappend completion [expr {[$ns now] - $started($self) - $ack_path}]
}

proc counters {agents name} {
    set values {}
    foreach agent $agents {
        lappend values [$agent set $name]
    }
    return $values
}

# What only the monitored port knows, as pairs for the report.
proc port_report {} {
    global arg rate monitor backlog port
    set utilization [expr {[$monitor set bdepartures_] * 8.0 / ($rate * $arg(duration))}]
    $backlog newpoint $arg(duration) 0.0
    set drops(1) 0
    set drops(2) 0
    foreach flow [$monitor flows] {
        set drops([$flow set flowid_]) [$flow set pdrops_]
    }
    return [list \
        utilization $utilization \
        queue_mean [expr {[$backlog set sum_] / $arg(duration) + 1500 * $utilization}] \
        queue_max [expr {[info exists port(max)] ? $port(max) : 0}] \
        drops [expr {$drops(1) + $drops(2)}] \
        drops_elephants $drops(1) \
        drops_mice $drops(2)]
}

proc finish {} {
    global arg elephants mice completion loop_start
    set wall [expr {([clock microseconds] - $loop_start) / 1e6}]
    set agents [concat $elephants $mice]
    set sent [sum [counters $agents ndatapack_]]
    set received [sum [counters $agents nackpack_]]
    set performance [performance $wall [expr {$sent + 5 * $received}]]
    set goodput {}
    foreach segments [counters $elephants ack_] {
        lappend goodput [expr {$segments * 1460 * 8 / $arg(duration)}]
    }
    set timeouts_elephants [sum [counters $elephants nrexmit_]]
    set timeouts_mice [sum [counters $mice nrexmit_]]
    puts [json_object [concat \
        [list simulator {"ns-2"} scenario {"dumbbell"} seed $arg(seed)] \
        [expr {$arg(monitor) ? [port_report] : {}}] \
        [list \
        timeouts [expr {$timeouts_elephants + $timeouts_mice}] \
        timeouts_elephants $timeouts_elephants \
        timeouts_mice $timeouts_mice \
        goodput_bps [json_object [list mean [mean $goodput] \
            min [quantile $goodput 0.0] max [quantile $goodput 1.0]]] \
        jain [jain $goodput] \
        mice [llength $mice] \
        mice_finished [llength $completion] \
        mice_fct_s [json_object [list mean [mean $completion] \
            p50 [quantile $completion 0.5] p99 [quantile $completion 0.99] \
            max [quantile $completion 1.0]]]] \
        $performance]]
    exit 0
}

$ns at 0.0 {set loop_start [clock microseconds]}
$ns at $arg(duration) finish
$ns run
