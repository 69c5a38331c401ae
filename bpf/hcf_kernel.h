/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What HCF's qdisc needs of the kernel: the few fields it uses, found at load time by name
 * (CO-RE), so that no generated vmlinux.h is needed; the kernel's functions; header layouts.
 */
#ifndef PENSTOCK_HCF_KERNEL_H
#define PENSTOCK_HCF_KERNEL_H

#include <linux/types.h>

/* As in linux/bpf.h, which on older machines lacks some of these. */
struct bpf_spin_lock {
	u32 value;
};

struct bpf_list_head {
	u64 opaque[2];
};

struct bpf_list_node {
	u64 opaque[3];
};

struct bpf_dynptr {
	u64 opaque[2];
};

struct bpf_iter_num {
	u64 opaque;
};

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAX_LOOPS	   (8 << 20)

#include <bpf/bpf_helpers.h>

#define EBUSY  16
#define EINVAL 22

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP	 1

#define ETH_HLEN  14
#define VLAN_HLEN 4

#define ETH_P_IP     0x0800
#define ETH_P_8021Q  0x8100
#define ETH_P_IPV6   0x86dd
#define ETH_P_8021AD 0x88a8

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

#define IPV4_IS_FRAGMENT 0x3fff /* more fragments, or an offset */

#define __contains(NAME, NODE) __attribute__((btf_decl_tag("contains:" #NAME ":" #NODE)))

struct ipv4_header {
	u8 version_length, service;
	u16 length, id, fragment;
	u8 ttl, protocol;
	u16 checksum;
	u32 source, destination;
};

struct ipv6_header {
	u32 version_class_label;
	u16 length;
	u8 next_header, hop_limit;
	u32 source[4], destination[4];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net_device {
	int ifindex;
};

struct netdev_queue {
	struct net_device *dev;
};

struct sk_buff {
	unsigned char *head, *data;
	u16 network_header, protocol;
	char cb[48];
};

struct qdisc_skb_cb {
	u32 pkt_len;
};

struct qdisc_skb_head {
	u32 qlen;
};

struct gnet_stats_queue {
	u32 backlog, drops, overlimits;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

struct Qdisc {
	u32 limit;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

#pragma clang attribute pop

/* libbpf demands a body of what the kernel's functions take. */
struct __sk_buff {
	u32 len;
};

struct netlink_ext_ack;
struct nlattr;

/* Of the kernel's, what a qdisc in BPF must have; libbpf matches the members by name. */
struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	char id[16];
};

extern void *bpf_obj_new_impl(u64 local_type_id, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;
extern int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				   void *meta, u64 offset) __ksym;
extern struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
extern int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *dynptr) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *dynptr, u64 offset, void *buffer,
			      u64 size) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire_ns, u64 slack_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

#define object_new(TYPE)	   ((TYPE *)bpf_obj_new_impl(bpf_core_type_id_local(TYPE), NULL))
#define object_drop(OBJECT)	   bpf_obj_drop_impl(OBJECT, NULL)
#define list_push_back(HEAD, LINK) bpf_list_push_back_impl(HEAD, LINK, NULL, 0)

/* Length as qdiscs see it. */
static __always_inline u32 packet_bytes(const struct sk_buff *skb)
{
	return ((const struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

#endif
