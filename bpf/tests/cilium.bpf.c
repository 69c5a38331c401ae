/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests only: stand-ins for the programs of Cilium on a node with one pod. They do to packets
 * what Cilium's do as far as it matters to programs next to them: each ends the chain of its hook,
 * by TC_ACT_OK or by a redirect, and a redirect passes by hooks.
 *
 * host's end of a veth, or netkit   cil_from_container: what the pod sends; cil_to_container
 * the node's card                   cil_from_netdev, cil_to_netdev
 * cilium_vxlan                      cil_from_overlay, cil_to_overlay
 *
 * From Cilium's "Life of a Packet", and its behaviour as of 1.19: host routing by eBPF sends what
 * arrives straight into the pod's namespace (bpf_redirect_peer) and what a pod sends straight to
 * the card (bpf_redirect_neigh); in a tunnel the identifier (VNI) is the identity of the sender.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../../core/types.h"

#define SERVER_PORT 5001

enum routing {
	ROUTING_STACK = 0, /* the kernel routes */
	ROUTING_BPF = 1,
	ROUTING_VXLAN = 2,
};

const volatile u32 routing;
const volatile u32 uplink, container, overlay; /* indexes of interfaces */
const volatile u32 pod, other_pod;	       /* addresses, as on the wire */
const volatile u32 node, other_node;
const volatile u32 identity;	/* of the pod */
const volatile u32 masquerades; /* whether the pod has the node's address towards the other node */

/* How often each program ran. */
struct run_counts {
	u64 from_container, to_container, from_netdev, to_netdev, from_overlay, to_overlay;
};

struct run_counts runs;

static __always_inline struct iphdr *ipv4(struct __sk_buff *skb)
{
	struct iphdr *ip = (void *)(long)skb->data + ETH_HLEN;

	if (skb->protocol != bpf_htons(ETH_P_IP) || (void *)(ip + 1) > (void *)(long)skb->data_end)
		return 0;
	return ip;
}

/* Writes the address at this offset of the IPv4 header of a TCP segment. */
static __always_inline void translate(struct __sk_buff *skb, u32 offset, u32 from, u32 to)
{
	u32 tcp = ETH_HLEN + sizeof(struct iphdr);

	bpf_l4_csum_replace(skb, tcp + __builtin_offsetof(struct tcphdr, check), from, to,
			    BPF_F_PSEUDO_HDR | sizeof(to));
	bpf_l3_csum_replace(skb, ETH_HLEN + __builtin_offsetof(struct iphdr, check), from, to,
			    sizeof(to));
	bpf_skb_store_bytes(skb, ETH_HLEN + offset, &to, sizeof(to), 0);
}

static __always_inline int into_tunnel(struct __sk_buff *skb)
{
	struct bpf_tunnel_key key = {
		.tunnel_id = identity,
		.remote_ipv4 = bpf_ntohl(other_node),
	};

	if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_ZERO_CSUM_TX))
		return TC_ACT_SHOT;
	return (int)bpf_redirect(overlay, 0);
}

SEC("tc")
int cil_from_container(struct __sk_buff *skb)
{
	struct iphdr *ip = ipv4(skb);

	runs.from_container++;
	if (!ip || (ip->daddr != other_pod && ip->daddr != other_node))
		return TC_ACT_OK;
	if (routing == ROUTING_VXLAN)
		return into_tunnel(skb);
	return routing == ROUTING_BPF ? (int)bpf_redirect_neigh(uplink, 0, 0, 0) : TC_ACT_OK;
}

SEC("tc")
int cil_to_container(struct __sk_buff *skb)
{
	(void)skb;
	runs.to_container++;
	return TC_ACT_OK;
}

SEC("tc")
int cil_from_netdev(struct __sk_buff *skb)
{
	struct iphdr *ip = ipv4(skb);
	u16 source = 0;

	runs.from_netdev++;
	if (!ip)
		return TC_ACT_OK;
	if (masquerades && ip->saddr == other_node && ip->daddr == node &&
	    ip->protocol == IPPROTO_TCP) {
		bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(*ip), &source, sizeof(source));
		if (source != bpf_htons(SERVER_PORT))
			return TC_ACT_OK;
		translate(skb, __builtin_offsetof(struct iphdr, daddr), node, pod);
		ip = ipv4(skb);
	}
	if (routing == ROUTING_BPF && ip && ip->daddr == pod)
		return (int)bpf_redirect_peer(container, 0);
	return TC_ACT_OK;
}

SEC("tc")
int cil_to_netdev(struct __sk_buff *skb)
{
	struct iphdr *ip = ipv4(skb);

	runs.to_netdev++;
	if (masquerades && ip && ip->saddr == pod && ip->daddr == other_node)
		translate(skb, __builtin_offsetof(struct iphdr, saddr), pod, node);
	return TC_ACT_OK;
}

SEC("tc")
int cil_from_overlay(struct __sk_buff *skb)
{
	struct iphdr *ip = ipv4(skb);

	runs.from_overlay++;
	if (!ip || ip->daddr != pod)
		return TC_ACT_OK;
	bpf_skb_change_type(skb, 0); /* PACKET_HOST */
	return (int)bpf_redirect_peer(container, 0);
}

SEC("tc")
int cil_to_overlay(struct __sk_buff *skb)
{
	(void)skb;
	runs.to_overlay++;
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
