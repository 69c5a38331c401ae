/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a port counts: one name for each number in the datapath, the simulator, the laboratory,
 * OpenMetrics (with the suffix _total) and reports. Units are in the names; what has none is a
 * plain number.
 */
#ifndef PENSTOCK_COUNTERS_H
#define PENSTOCK_COUNTERS_H

#include "types.h"

/* C(name, "what it counts"); first those that two of the lists below have. */
#define EGRESS_PACKETS(C) C(egress_packets, "Packets that left by the port")
#define EGRESS_BYTES(C)	  C(egress_bytes, "Bytes that left by the port")
#define REPEATED_BYTES(C) C(repeated_bytes, "Payload that left again")
#define ACKS(C)		  C(acks, "ACKs that came in by the port")
#define FLOWS_BEGUN(C)	  C(flows_begun, "Flows that began, or sent again after idleness")
#define TIMEOUTS_SEEN(C)                                                                           \
	C(timeouts_seen, "Data or SYNs repeated after 190 ms without a packet of their flow")
#define ACKS_REWRITTEN(C) C(acks_rewritten, "ACKs whose window was lowered")

#define PORT_COUNTERS(C)                                                                           \
	EGRESS_PACKETS(C)                                                                          \
	EGRESS_BYTES(C)                                                                            \
	C(ingress_packets, "Packets that came in by the port")                                     \
	ACKS(C)                                                                                    \
	ACKS_REWRITTEN(C)                                                                          \
	C(acks_floored, "ACKs whose window would have been lowered further but for the floor")     \
	C(acks_first_rewritten, "Rewritten SYN-ACKs and first ACKs of a flow")                     \
	C(acks_edge_kept, "ACKs whose window was left higher, not to take back what was offered")  \
	C(ecn_marks, "Packets marked with ECN CE")                                                 \
	C(syns, "SYNs and SYN-ACKs in both directions")                                            \
	FLOWS_BEGUN(C)                                                                             \
	C(flows_ended, "Flows that ended or idled")                                                \
	C(half_open_begun, "Flows seen for the first time, by a SYN or by data in mid-life")       \
	C(half_open_proven, "Half-open flows whose handshake or data was acknowledged")            \
	C(half_open_expired, "Half-open flows forgotten after 3 s")                                \
	C(zero_windows, "ACKs whose receiver offered nothing")                                     \
	C(clamps, "Times that the scheme began to clamp all flows")                                \
	TIMEOUTS_SEEN(C)                                                                           \
	C(data_dropped, "Data packets that the scheme dropped, where the port allows it")          \
	C(control_prioritized, "SYNs and pure ACKs that left with the port's control priority")    \
	REPEATED_BYTES(C)

/*
 * Of each side of a canary (bpf/policy.h): what of the above its flows caused, and how long they
 * were counted, which makes averages for each flow.
 */
#define CANARY_PORT_COUNTERS(C)                                                                    \
	EGRESS_PACKETS(C)                                                                          \
	EGRESS_BYTES(C)                                                                            \
	REPEATED_BYTES(C)                                                                          \
	ACKS(C)                                                                                    \
	FLOWS_BEGUN(C)                                                                             \
	TIMEOUTS_SEEN(C)

#define CANARY_COUNTERS(C)                                                                         \
	CANARY_PORT_COUNTERS(C)                                                                    \
	ACKS_REWRITTEN(C)                                                                          \
	C(flow_ms, "Milliseconds for which flows were counted, added up over the flows")

/* Where windows are credit, of a port. */
#define CREDIT_COUNTERS(C)                                                                         \
	C(grants, "Grants: each lets a flow send some segments")                                   \
	C(grants_resent, "Reminders of grants without effect, which take them back")               \
	C(grants_lapsed, "Grants given up after all reminders")                                    \
	C(carriers, "Copies of packets made to send grants")                                       \
	C(carriers_idle, "Of these, those that found nothing to send")                             \
	C(carriers_failed, "Of these, those that the kernel refused to change")                    \
	C(flows_refused, "Flows that pass untouched for want of an entry")

/* R(NAME, name, "when"): why a packet passed without being looked at further. */
#define PASS_REASON_LIST(R)                                                                        \
	R(NOT_IP, not_ip, "Neither IPv4 nor IPv6")                                                 \
	R(NOT_TCP, not_tcp, "Another protocol than TCP")                                           \
	R(FRAGMENT, fragment, "A fragment of an IP packet")                                        \
	R(TRUNCATED, truncated, "Ends within a header")                                            \
	R(MALFORMED, malformed, "Lengths that contradict each other")                              \
	R(TOO_DEEP, too_deep, "More VLAN tags, extension headers or tunnels than are followed")    \
	R(STALE, stale, "The port is paused or its agent's heartbeat stale, or the ABI differs")   \
	R(AUTHENTICATED, authenticated, "Its TCP-MD5 or TCP-AO digest covers what would change")   \
	R(EXCLUDED, excluded, "Policy: its flow or its mark is excluded, or not included")         \
	R(HELD_OUT, held_out, "Canary: its flow is not among those controlled")                    \
	R(UNKNOWN_SCALE, unknown_scale, "An ACK of a flow whose SYNs were not seen")               \
	R(TABLE_FULL, table_full, "No entry could be made for its flow")                           \
	R(FAILED, failed, "The kernel refused to change the packet")

#define PASS_REASON_NUMBER(NAME, name, when) PASS_##NAME,

enum pass_reason {
	PASS_REASON_LIST(PASS_REASON_NUMBER) PASS_REASONS
};

#endif
