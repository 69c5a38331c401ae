/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the benchmark (make bench-datapath): a repeated test run gives a program its own packet back,
 * whose window is low already. So these put it up again first; `restore` alone is what that costs.
 * The offset of the TCP header comes in cb[0].
 */
#include "../port.h"

static __always_inline int restore_window(struct __sk_buff *skb)
{
	u32 tcp = skb->cb[0];
	u16 high = 0xffff, window;

	if (bpf_skb_load_bytes(skb, tcp + TCP_WINDOW, &window, sizeof(window)))
		return NEXT;
	bpf_l4_csum_replace(skb, tcp + TCP_CHECKSUM, window, high, sizeof(high));
	bpf_skb_store_bytes(skb, tcp + TCP_WINDOW, &high, sizeof(high), 0);
	return NEXT;
}

SEC("tc")
int empty(struct __sk_buff *skb)
{
	(void)skb;
	return NEXT;
}

SEC("tc")
int restore(struct __sk_buff *skb)
{
	return restore_window(skb);
}

#define COST_PROGRAMS(name, NAME, ...)                                                             \
	SEC("tc")                                                                                  \
	int name##_egress(struct __sk_buff *skb)                                                   \
	{                                                                                          \
		return watch_egress(skb, SCHEME_##NAME);                                           \
	}                                                                                          \
	SEC("tc")                                                                                  \
	int name##_ingress(struct __sk_buff *skb)                                                  \
	{                                                                                          \
		return rewrite_ingress(skb, SCHEME_##NAME);                                        \
	}                                                                                          \
	SEC("tc")                                                                                  \
	int name##_restored(struct __sk_buff *skb)                                                 \
	{                                                                                          \
		restore_window(skb);                                                               \
		return rewrite_ingress(skb, SCHEME_##NAME);                                        \
	}

COST_PROGRAMS(observe, NONE)
WINDOW_SCHEMES(COST_PROGRAMS)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
