/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cable between a switch and a host: it loses packets at random, and has those for the host go
 * through another interface first, which holds them (path.py).
 *
 * Compiled with LOSS, of all packets, and ACK_LOSS, of ACKs without payload for the host, as shares
 * of 2^32; HOLD is the index of that interface, 0: none.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name)   __attribute__((section(name), used))
#define LONGEST_ACK 66 /* Ethernet, IPv4, TCP with timestamps */

static __u32 (*const random_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*const redirect)(__u32 index, __u64 flags) = (void *)BPF_FUNC_redirect;

static __attribute__((always_inline)) int is_lost(__u32 share)
{
	return share && random_u32() < share;
}

SEC("tc/from_host")
int from_host(struct __sk_buff *skb)
{
	(void)skb;
	return is_lost(LOSS) ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("tc/to_host")
int to_host(struct __sk_buff *skb)
{
	if (HOLD && skb->ingress_ifindex != HOLD)
		return redirect(HOLD, 0);
	return is_lost(LOSS) || (skb->len <= LONGEST_ACK && is_lost(ACK_LOSS)) ? TC_ACT_SHOT
									       : TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
