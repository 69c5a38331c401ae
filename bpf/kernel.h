/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is read of the kernel's own structs: these fields alone, found by CO-RE at load time.
 *
 * bpf_cast_to_kern_ctx and bpf_rdonly_cast came with Linux 6.2. They cost nothing: the verifier
 * makes moves of them. Before, has_kernel_view() is false and their callers do without.
 */
#ifndef PENSTOCK_KERNEL_H
#define PENSTOCK_KERNEL_H

#include "../core/types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gnet_stats_queue {
	u32 backlog;
	u32 drops;
};

struct Qdisc {
	struct gnet_stats_queue qstats;
};

struct netdev_queue {
	struct Qdisc *qdisc;
};

struct net_device {
	struct Qdisc *qdisc;
	struct netdev_queue *_tx;
	unsigned int real_num_tx_queues;
};

struct sk_buff {
	struct net_device *dev;
	unsigned char *head, *data;
	u8 ip_summed : 2;
	u8 encapsulation : 1; /* by this host, or a tunnel's super-packet */
	u16 csum_start;	      /* from head */
};

struct in6_addr___kernel {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr; /* as on the wire */
	u16 skc_dport;		      /* as on the wire */
	u16 skc_num;		      /* of this end, host order */
	u16 skc_family;
	u8 skc_state;
	struct in6_addr___kernel skc_v6_daddr, skc_v6_rcv_saddr;
};

struct tcp_options_received {
	u16 tstamp_ok : 1; /* both ends offered timestamps */
	u16 wscale_ok : 1; /* both ends offered to scale */
	u8 snd_wscale : 4; /* of the windows that come in */
	u8 rcv_wscale : 4; /* of those that go out */
	u16 mss_clamp;	   /* the other end's MSS option */
};

struct tcp_sock {
	u16 advmss; /* this end's MSS option, less timestamps */
	struct tcp_options_received rx_opt;
};

#pragma clang attribute pop

/* The context of a program of type iter/tcp (net/ipv4/tcp_ipv4.c). */
struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common; /* null after the last */
};

#define CHECKSUM_PARTIAL 3 /* include/linux/skbuff.h: the rest is summed on its way out */

extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;
extern void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym __weak;

static __always_inline _Bool has_kernel_view(void)
{
	return bpf_ksym_exists(bpf_cast_to_kern_ctx) && bpf_ksym_exists(bpf_rdonly_cast);
}

#endif
