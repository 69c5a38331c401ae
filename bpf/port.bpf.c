/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port: data that leaves by it is watched at egress, ACKs that enter by it are rewritten at
 * ingress. One pair of programs for each scheme, all over the same maps.
 *
 * They return NEXT and drop nothing, unless the port allows its scheme to drop data (PORT_DROPS,
 * HSCC's sigma). Packets not understood, and all packets when the agent is dead (heartbeat) or of
 * another version (abi), pass unchanged; flows are followed all the same.
 */
#define CORE_PARAMS_HELD 1 /* by the agent, which writes none out of its range */

#include "port.h"
#include "sockets.h"

#define PORT_PROGRAMS(name, NAME, ...)                                                             \
	SEC("tc")                                                                                  \
	int name##_egress(struct __sk_buff *skb)                                                   \
	{                                                                                          \
		return watch_egress(skb, SCHEME_##NAME);                                           \
	}                                                                                          \
	SEC("tc")                                                                                  \
	int name##_ingress(struct __sk_buff *skb)                                                  \
	{                                                                                          \
		return rewrite_ingress(skb, SCHEME_##NAME);                                        \
	}

PORT_PROGRAMS(observe, NONE)
WINDOW_SCHEMES(PORT_PROGRAMS)

#include "shim.h"
#include "sicc_shim.h"

/* Run by the agent a few times a second, again while it returns 1. */
SEC("syscall")
int sweep(void *context)
{
	(void)context;
	return sweep_ports();
}

/* The same where sleepable programs may not lock (Linux before 6.6); any packet will do. */
SEC("tc")
int sweep_tc(struct __sk_buff *skb)
{
	(void)skb;
	return sweep_ports();
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
