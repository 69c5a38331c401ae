/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCF as a qdisc (bpf_qdisc: Linux 6.16 and later with CONFIG_NET_SCH_BPF).
 *
 * core/hcf.h decides. Here packets wait in two lists, their flows' keys are read, and the rate can
 * be limited to emulate the port of a switch. All operations of a qdisc run under its lock, so the
 * state needs none; the kernel's lists require one, which is never contended.
 *
 * Flows are TCP and UDP connections, over IPv4 and IPv6, inside VLAN tags too; other IP packets
 * are distinguished by addresses (so are fragments, and IPv6 with extension headers), the rest by
 * protocol alone. A GSO packet counts as one packet.
 *
 * The object serves one port: another qdisc of the same kind is refused. A qdisc is created by
 * netlink, as any other: tc qdisc add dev IFACE root KIND, where KIND is `hcf` or what the agent
 * named it.
 */
#include "hcf_abi.h"

#include "hcf_kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

/* BPF_PROG names what the kernel passes, used or not. */
#pragma clang diagnostic ignored "-Wunused-parameter"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* clang 14 loses the tag __kptr of a member that points to a struct, but not to a typedef. */
typedef struct sk_buff packet_t;

/* A packet waits in a node of its own: the verifier follows who owns it. */
struct node {
	struct bpf_list_node link;
	packet_t __kptr *skb;
};

struct queues {
	struct bpf_spin_lock lock;
	struct bpf_list_head first __contains(node, link);
	struct bpf_list_head second __contains(node, link);
};

#define SINGLE(NAME, VALUE)                                                                        \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

SINGLE(hcf_config, struct hcf_config);
SINGLE(hcf_port, struct hcf_port);
SINGLE(hcf_queues, struct queues);

/* Everything an operation works on; the look-ups cannot fail, but the verifier requires a test. */
struct port {
	struct hcf_config *config;
	struct hcf_port *shared;
	struct queues *queues;
};

static __always_inline _Bool find_port(struct port *port)
{
	u32 zero = 0;

	port->config = bpf_map_lookup_elem(&hcf_config, &zero);
	port->shared = bpf_map_lookup_elem(&hcf_port, &zero);
	port->queues = bpf_map_lookup_elem(&hcf_queues, &zero);
	return port->config && port->shared && port->queues;
}

static __always_inline void push(struct queues *queues, u32 queue, struct node *node)
{
	bpf_spin_lock(&queues->lock);
	if (queue == HCF_QUEUE_0)
		list_push_back(&queues->first, &node->link);
	else
		list_push_back(&queues->second, &node->link);
	bpf_spin_unlock(&queues->lock);
}

/* The head of a queue, now the caller's, or NULL. */
static __always_inline struct sk_buff *pop(struct queues *queues, u32 queue)
{
	struct bpf_list_node *link;
	struct sk_buff *skb;
	struct node *node;

	bpf_spin_lock(&queues->lock);
	if (queue == HCF_QUEUE_0)
		link = bpf_list_pop_front(&queues->first);
	else
		link = bpf_list_pop_front(&queues->second);
	bpf_spin_unlock(&queues->lock);
	if (!link)
		return NULL;
	node = container_of(link, struct node, link);
	skb = bpf_kptr_xchg(&node->skb, NULL);
	object_drop(node);
	return skb;
}

/* The port numbers of a TCP or UDP packet as they are on the wire; 0 of others. */
static __always_inline u32 ports_at(struct bpf_dynptr *packet, u32 offset, u32 protocol)
{
	u32 buffer, *ports;

	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return 0;
	ports = bpf_dynptr_slice(packet, offset, &buffer, sizeof(buffer));
	return ports ? *ports : 0;
}

static __always_inline u32 key4(struct bpf_dynptr *packet, u32 offset, u32 seed)
{
	struct ipv4_header buffer, *ip;
	u32 ports;

	ip = bpf_dynptr_slice(packet, offset, &buffer, sizeof(buffer));
	if (!ip)
		return 0;
	ports = ip->fragment & bpf_htons(IPV4_IS_FRAGMENT)
			? 0
			: ports_at(packet, offset + (ip->version_length & 0xf) * 4, ip->protocol);
	return hcf_flow_key(seed, ip->source, ip->destination, ports & 0xffff, ports >> 16);
}

static __always_inline u32 key6(struct bpf_dynptr *packet, u32 offset, u32 seed)
{
	struct ipv6_header buffer, *ip;
	u32 ports;

	ip = bpf_dynptr_slice(packet, offset, &buffer, sizeof(buffer));
	if (!ip)
		return 0;
	ports = ports_at(packet, offset + sizeof(buffer), ip->next_header);
	return hcf_flow_key(seed, hcf_fold6(seed, ip->source), hcf_fold6(seed, ip->destination),
			    ports & 0xffff, ports >> 16);
}

static __always_inline u32 key_of(struct sk_buff *skb, u32 seed)
{
	u32 offset = skb->network_header - (u32)(skb->data - skb->head);
	u32 protocol = bpf_ntohs(skb->protocol);
	struct bpf_dynptr packet;
	u8 buffer, *version;

	if (protocol != ETH_P_IP && protocol != ETH_P_IPV6 && protocol != ETH_P_8021Q &&
	    protocol != ETH_P_8021AD)
		return protocol;
	if (bpf_dynptr_from_skb((struct __sk_buff *)skb, 0, &packet))
		return protocol;
	/*
	 * The protocol may be that of a VLAN tag, behind which the network header is, except where
	 * a bridge passes on a packet with two: the kernel has taken one, and put it on the other.
	 */
	if (protocol != ETH_P_IP && protocol != ETH_P_IPV6 && offset == ETH_HLEN)
		offset += VLAN_HLEN;
	version = bpf_dynptr_slice(&packet, offset, &buffer, sizeof(buffer));
	if (!version)
		return protocol;
	switch (*version >> 4) {
	case 4:
		return key4(&packet, offset, seed);
	case 6:
		return key6(&packet, offset, seed);
	default:
		return protocol;
	}
}

/* HCF's fixed period, kept by the packets themselves: it matters only when there are any. */
static __always_inline void tick(struct port *port, u64 now_ns)
{
	const struct hcf_config *config = port->config;

	if (config->params.period == HCF_PERIOD_DYNAMIC || now_ns < port->shared->next_tick_ns)
		return;
	hcf_on_tick(&port->shared->state, &config->params);
	port->shared->next_tick_ns = now_ns + config->period_ns;
}

static __always_inline int drop(struct sk_buff *skb, struct Qdisc *sch,
				struct bpf_sk_buff_ptr *to_free)
{
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops/hcf_enqueue")
int BPF_PROG(hcf_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 size = packet_bytes(skb), key, queue, high;
	struct hcf_counters *counters;
	struct port port;
	struct node *node;

	if (!find_port(&port))
		return drop(skb, sch, to_free);
	counters = &port.shared->counters;
	/* A new period has other keys. */
	tick(&port, bpf_ktime_get_ns());
	key = key_of(skb, hcf_key_seed(&port.shared->state));
	/* Before the decision, which counts the packet in. */
	node = object_new(struct node);
	if (!node) {
		counters->failed_packets++;
		return drop(skb, sch, to_free);
	}
	high = port.shared->state.high & 1;
	queue = hcf_on_enqueue(&port.shared->state, &port.config->params, key, size);
	if (queue == HCF_NONE) {
		object_drop(node);
		counters->dropped_packets++;
		counters->dropped_bytes += size;
		return drop(skb, sch, to_free);
	}
	if (queue == high)
		counters->high_packets++;
	else
		counters->low_packets++;
	skb = bpf_kptr_xchg(&node->skb, skb);
	if (skb) /* a new node holds none, which the verifier does not know */
		bpf_qdisc_skb_drop(skb, to_free);
	push(port.queues, queue, node);
	sch->q.qlen++;
	sch->qstats.backlog += size;
	return NET_XMIT_SUCCESS;
}

/* Whether the rate lets a packet leave now; if not, the qdisc is asked again in time. */
static __always_inline _Bool may_leave(struct Qdisc *sch, struct port *port, u64 now_ns)
{
	if (!port->config->ns_per_byte_q16 || now_ns >= port->shared->next_departure_ns)
		return 1;
	sch->qstats.overlimits++;
	port->shared->counters.waits++;
	bpf_qdisc_watchdog_schedule(sch, port->shared->next_departure_ns, 0);
	return 0;
}

SEC("struct_ops/hcf_dequeue")
struct sk_buff *BPF_PROG(hcf_dequeue, struct Qdisc *sch)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct sk_buff *skb;
	struct port port;
	u32 queue, size;

	if (!find_port(&port))
		return NULL;
	tick(&port, now_ns);
	queue = hcf_on_dequeue(&port.shared->state);
	if (queue == HCF_NONE || !may_leave(sch, &port, now_ns))
		return NULL;
	skb = pop(port.queues, queue);
	if (!skb)
		return NULL;
	size = packet_bytes(skb);
	hcf_departed(&port.shared->state, &port.config->params, queue, size);
	port.shared->next_departure_ns = max_u64(port.shared->next_departure_ns,
						 now_ns - min_u64(now_ns, port.config->burst_ns)) +
					 (size * port.config->ns_per_byte_q16 >> 16);
	port.shared->counters.sent_packets++;
	port.shared->counters.sent_bytes += size;
	sch->q.qlen--;
	sch->qstats.backlog -= size;
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/hcf_init")
int BPF_PROG(hcf_init_qdisc, struct Qdisc *sch, struct nlattr *options,
	     struct netlink_ext_ack *extack)
{
	struct port port;
	u32 seed;

	if (!find_port(&port) || port.config->abi != HCF_ABI ||
	    !hcf_params_ok(&port.config->params))
		return -EINVAL;
	if (port.shared->attached)
		return -EBUSY;
	seed = port.config->seed ? port.config->seed : bpf_get_prandom_u32();
	hcf_init(&port.shared->state, &port.config->params, seed);
	port.shared->attached = 1;
	sch->limit = 1; /* marks the port's own: hcf_reset and hcf_destroy act on it alone */
	port.shared->ifindex = sch->dev_queue->dev->ifindex;
	return 0;
}

/* Frees what waits; the kernel puts its own counts to zero. */
SEC("struct_ops/hcf_reset")
void BPF_PROG(hcf_reset, struct Qdisc *sch)
{
	struct sk_buff *skb;
	struct port port;
	u32 seed;
	int i;

	/* The kernel may call it for what hcf_init_qdisc has refused, too. */
	if (!find_port(&port) || !sch->limit)
		return;
	bpf_for(i, 0, BPF_MAX_LOOPS)
	{
		skb = pop(port.queues, HCF_QUEUE_0);
		if (!skb)
			skb = pop(port.queues, HCF_QUEUE_1);
		if (!skb)
			break;
		bpf_kfree_skb(skb);
	}
	seed = hcf_random(&port.shared->state);
	hcf_init(&port.shared->state, &port.config->params, seed);
}

SEC("struct_ops/hcf_destroy")
void BPF_PROG(hcf_destroy, struct Qdisc *sch)
{
	struct port port;

	/* The kernel calls it for what hcf_init_qdisc has refused, too. */
	if (find_port(&port) && sch->limit)
		port.shared->attached = 0;
}

SEC(".struct_ops.link")
struct Qdisc_ops hcf = {
	.enqueue = (void *)hcf_enqueue,
	.dequeue = (void *)hcf_dequeue,
	.init = (void *)hcf_init_qdisc,
	.reset = (void *)hcf_reset,
	.destroy = (void *)hcf_destroy,
	.id = "hcf",
};
