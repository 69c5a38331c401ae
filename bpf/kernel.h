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
	u16 csum_start; /* from head */
};

#pragma clang attribute pop

#define CHECKSUM_PARTIAL 3 /* include/linux/skbuff.h: the rest is summed on its way out */

extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;
extern void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym __weak;

static __always_inline _Bool has_kernel_view(void)
{
	return bpf_ksym_exists(bpf_cast_to_kern_ctx) && bpf_ksym_exists(bpf_rdonly_cast);
}

#endif
