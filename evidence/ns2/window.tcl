# SPDX-License-Identifier: Apache-2.0
#
# FairQ (Alg. 1) and HSCC (§III) at one port of ns-2, written from the papers.
#
# The port is a link; its switch sees the link's queue, the data that leaves by
# it and the ACKs that come back by the opposite link. Both schemes set the
# window in those ACKs. ns-2's ACKs have no window field, so the sender's window
# (`window_`, whole packets) is set when the ACK reaches it: `back` seconds
# later, the propagation from the switch. Its transmission takes longer, so the
# window always arrives first. As ns-2 sends nothing for a window of 0, one
# packet is the smallest.
#
# Two rules of ns-2's TCP matter only where a switch lowers windows, and are undone
# here (`tcp=ns2` leaves them): after a loss ns-2 halves the smaller of cwnd and
# the receiver's window, though these schemes leave cwnd to TCP (HSCC §III: "Cwnd
# that was cut in half resumes the rate control"), see `keep_cwnd`; and duplicate
# ACKs release at most two packets each, though cwnd and a window that opens
# again may allow more, see `send_all`.

# Calls `command` with each event of ns-2's trace at the point `part` of a link.
proc on_event {link part command} {
    set trace [$link set $part]
    $trace set callback_ 1
    $trace proc handle {event} "$command \$event"
}

# Puts `scheme` at the port `from` -> `to` of `buffer` bytes and `rate` bit/s. An
# option is a parameter of the paper, or: `offered`, the receivers' own window in
# packets; `segment` and `packet`, the payload and the size of a full packet;
# `data_end`, the last packet of a flow that has an end, which carries its FIN.
proc control {scheme from to buffer rate back options} {
    global ns port
    array set port $options
    array set port [list scheme $scheme buffer [expr {double($buffer)}] rate $rate back $back \
        queued 0 on_wire 0 sent_at 0.0 max 0]
    set forward [$ns link $from $to]
    set backward [$ns link $to $from]
    $forward trace $ns {}
    $backward trace $ns {}
    on_event $forward enqT_ arrival
    on_event $forward deqT_ departure
    on_event $forward drpT_ drop
    on_event $backward rcvT_ ack
    ${scheme}_start
}

# The sender `tcp` is a flow through the port, with a FIN if it `ends`.
proc controlled {tcp ends} {
    global flow
    set flow([$tcp set agent_addr_].[$tcp set agent_port_]) $tcp
    set flow($tcp,ends) $ends
    set flow($tcp,acked) -1
    set flow($tcp,cuts) 0
}

# The queue in bytes, the packet in transmission included.
proc queue {} {
    global ns port
    set sending [expr {[$ns now] < $port(sent_at) + $port(on_wire) * 8 / $port(rate)}]
    return [expr {$port(queued) + ($sending ? $port(on_wire) : 0)}]
}

# The fields of an event: what, time, from, to, type, bytes, flags, fid, source,
# destination, sequence number, id.
proc arrival {event} {
    global port
    incr port(queued) [lindex $event 5]
    queue_changed
}

proc drop {event} {
    global port
    incr port(queued) -[lindex $event 5]
}

proc departure {event} {
    global ns port flow
    set bytes [lindex $event 5]
    incr port(queued) -$bytes
    set port(on_wire) $bytes
    set port(sent_at) [$ns now]
    queue_changed
    set tcp $flow([lindex $event 8])
    if {$flow($tcp,ends) && [lindex $event 10] == $port(data_end)} {
        $port(scheme)_fin
    }
}

proc queue_changed {} {
    global port
    set now_queued [queue]
    if {$now_queued > $port(max) && $now_queued <= $port(buffer)} {
        set port(max) $now_queued
    }
    $port(scheme)_queue $now_queued
}

# An ACK passes the switch; the first of a flow is its SYN-ACK, of which none is
# lost on the way back.
proc ack {event} {
    global ns port flow
    set tcp $flow([lindex $event 9])
    if {$flow($tcp,acked) < 0} {
        $port(scheme)_synack
    }
    set repeated [expr {[lindex $event 10] == $flow($tcp,acked)}]
    set flow($tcp,acked) [lindex $event 10]
    set share [$port(scheme)_window]
    set window [expr {$share < $port(offered) ? $share : $port(offered)}]
    $ns at [expr {[$ns now] + $port(back)}] "advertise $tcp $window $repeated"
}

# The ACK's window, at the sender, just before the ACK itself.
proc advertise {tcp window repeated} {
    global port
    if {$port(tcp) ne "ns2"} {
        keep_cwnd $tcp
        send_all $tcp $repeated
    }
    $tcp set window_ $window
}

# What the windows allow once a duplicate ACK or one in recovery has arrived, 32 ns
# from now: ns-2 tries to send whenever the application gives it data, here none.
proc send_all {tcp repeated} {
    global ns
    if {$repeated || [$tcp set dupacks_] > 0} {
        $ns at [expr {[$ns now] + 100e-9}] "$tcp advanceby 0"
    }
}

# If ns-2 has cut the window since the flow's last ACK, makes it the cut of what
# the flow had without the switch's window: half in fast retransmit; after a
# timeout one packet, with half as threshold, and with the smallest after another.
# Between the two ACKs nothing was sent but the packet sent again.
proc keep_cwnd {tcp} {
    global port flow
    set cuts [$tcp set ncwndcuts_]
    set timeouts [$tcp set nrexmit_]
    if {$cuts != $flow($tcp,cuts)} {
        set half [expr {int($flow($tcp,cwnd) / 2)}]
        set repeated [expr {$timeouts > $flow($tcp,timeouts) + 1}]
        $tcp set ssthresh_ [expr {$half < 2 || $repeated ? 2 : $half}]
        if {$timeouts == $flow($tcp,timeouts)} {
            $tcp set cwnd_ [expr {$half < 1 ? 1 : $half}]
        }
    }
    set cwnd [$tcp set cwnd_]
    array set flow [list $tcp,cuts $cuts $tcp,timeouts $timeouts \
        $tcp,cwnd [expr {$cwnd < $port(offered) ? $cwnd : $port(offered)}]]
}

# FairQ, Alg. 1. Errata: at a FIN the printed `beta >= 0` would divide by zero at
# 0, and the sum and the count of intervals begin again with each change.
proc fairq_start {} {
    global port
    array set port {share 0.0 flows 0 gamma 0.0 ticks 0 slow_start 0}
    fairq_tick
}

proc fairq_synack {} {
    global port
    if {$port(flows) == 0} {
        fairq_restart
    } else {
        set port(share) [expr {$port(share) * $port(flows) / ($port(flows) + 1)}]
    }
    incr port(flows)
}

proc fairq_fin {} {
    global port
    if {$port(flows) == 0} { return }
    incr port(flows) -1
    if {$port(flows) > 0} {
        set port(share) [expr {$port(share) * ($port(flows) + 1) / $port(flows)}]
    } else {
        fairq_restart
    }
}

proc fairq_restart {} {
    global port
    set port(share) [expr {$port(alpha) * $port(buffer)}]
    set port(slow_start) 1
}

proc fairq_tick {} {
    global ns port
    set target [expr {$port(alpha) * $port(buffer)}]
    set kappa [expr {1 - [queue] / $target}]
    set port(gamma) [expr {$port(gamma) + $kappa * $port(segment) / $port(M)}]
    incr port(ticks)
    if {$port(ticks) == $port(M)} {
        if {$port(slow_start)} {
            set port(share) [expr {$port(share) + 2.0 * $port(segment)}]
        } elseif {$port(flows) > 0} {
            set port(share) [expr {$port(share) + $port(gamma) / $port(flows)}]
        }
        array set port {gamma 0.0 ticks 0}
    }
    if {$kappa <= 0} {
        set port(slow_start) 0
    }
    $ns at [expr {[$ns now] + $port(T)}] fairq_tick
}

proc fairq_window {} {
    global port
    set packets [expr {int($port(share) / $port(segment))}]
    return [expr {$packets < 1 ? 1 : $packets}]
}

proc fairq_queue {bytes} {}

# HSCC, Fig. 3 and 5b: one packet while the queue is between the thresholds on its
# way down.
proc hscc_start {} {
    global port
    array set port {clamped 0 clamps 0}
}

proc hscc_queue {bytes} {
    global port
    if {!$port(clamped) && $bytes >= $port(alpha2) * $port(buffer)} {
        set port(clamped) 1
        incr port(clamps)
    } elseif {$port(clamped) && $bytes <= $port(alpha1) * $port(buffer)} {
        set port(clamped) 0
    }
}

proc hscc_window {} {
    global port
    return [expr {$port(clamped) ? 1 : $port(offered)}]
}

proc hscc_synack {} {}
proc hscc_fin {} {}
