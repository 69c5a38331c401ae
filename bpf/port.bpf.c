/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port: what leaves by it is watched at egress, the ACKs that enter by it are rewritten at
 * ingress. One pair of programs for each scheme, all over the same maps.
 *
 * They drop nothing and answer NEXT, whatever comes: HSCC's sigma (§III-B), which drops data to
 * keep room for control packets, is not applied here. Packets not understood, and all packets when
 * the agent is dead (heartbeat) or another's (abi), pass as they are; flows are followed on.
 */
#include "port.h"
#include "sweep.h"

#define PORT_PROGRAMS(NAME, SCHEME)                                                                \
	SEC("tc")                                                                                  \
	int NAME##_egress(struct __sk_buff *skb)                                                   \
	{                                                                                          \
		return watch_egress(skb, SCHEME);                                                  \
	}                                                                                          \
	SEC("tc")                                                                                  \
	int NAME##_ingress(struct __sk_buff *skb)                                                  \
	{                                                                                          \
		return rewrite_ingress(skb, SCHEME);                                               \
	}

PORT_PROGRAMS(observe, PORT_OBSERVE)
PORT_PROGRAMS(fairq, PORT_FAIRQ)
PORT_PROGRAMS(hscc, PORT_HSCC)

#include "shim.h"

/* Run by the agent a few times a second. */
SEC("syscall")
int sweep(void *context)
{
	(void)context;
	return sweep_port();
}

/* The same where sleepable programs may not lock (Linux before 6.6); any packet will do. */
SEC("tc")
int sweep_tc(struct __sk_buff *skb)
{
	(void)skb;
	return sweep_port();
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
