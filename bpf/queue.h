/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The length of the port's queue: the backlog of its qdisc, as the packet finds it, since the
 * programs run before it is queued.
 *
 * With a multiqueue root (mq) the queues below it hold the bytes. Which of them the packet will
 * take is not decided yet, and all leave by one wire: their sum counts, read again every 20 us for
 * each 64 queues. Those beyond 1024 are not read.
 *
 * Not included: the device's own ring, queues below a class, and qdiscs that count per CPU
 * (pfifo_fast): these read as empty. Before Linux 6.2 all queues do.
 */
#ifndef PENSTOCK_QUEUE_H
#define PENSTOCK_QUEUE_H

#include "kernel.h"
#include "maps.h"

#define QUEUE_MAX_TX	 1024
#define QUEUE_REFRESH_NS 20000 /* for each 64 queues */

struct queue_walk {
	u64 queues; /* address of the device's first */
	u32 backlog, drops;
};

static long queue_add(u32 index, struct queue_walk *walk)
{
	/* The verifier follows no pointer at a variable offset, but a cast one. */
	u64 at = walk->queues + (u64)index * bpf_core_type_size(struct netdev_queue);
	struct netdev_queue *queue =
		bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct netdev_queue));

	walk->backlog += queue->qdisc->qstats.backlog;
	walk->drops += queue->qdisc->qstats.drops;
	return 0;
}

/* The queues below a multiqueue root, added up: bytes in the upper half, drops in the lower. */
static __noinline u64 queue_sum(struct __sk_buff *skb)
{
	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);
	struct net_device *device = packet->dev;
	struct queue_walk walk = {.queues = (u64)device->_tx};

	bpf_loop(min_u32(device->real_num_tx_queues, QUEUE_MAX_TX), queue_add, &walk, 0);
	return (u64)walk.backlog << 32 | walk.drops;
}

/* The same in bytes, read again when it is due. */
static __noinline u32 queue_of_all(struct __sk_buff *skb, struct port_state *port, u64 now_ns)
{
	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);
	u32 refresh_ns = QUEUE_REFRESH_NS * (1 + packet->dev->real_num_tx_queues / 64);

	if (elapsed_ns(port->queue_ns, now_ns) >= refresh_ns) {
		port->queue_bytes = (u32)(queue_sum(skb) >> 32);
		port->queue_ns = now_ns;
	}
	return port->queue_bytes;
}

/*
 * The queue in bytes; 0 if unknown. Each load from the kernel's structs has its bounds checked, so
 * the kind of root is not looked at for each packet.
 */
static __always_inline u32 queue_read(struct __sk_buff *skb, struct port_state *port, u64 now_ns)
{
	if (!has_kernel_view())
		return 0;
	if (port->queues)
		return queue_of_all(skb, port, now_ns);

	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);

	return packet->dev->qdisc->qstats.backlog;
}

/* How many queues the device has, if its root only holds theirs (mq); 0 if it is that of each. */
static __always_inline u32 queue_count(struct __sk_buff *skb)
{
	if (!has_kernel_view())
		return 0;

	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);
	struct net_device *device = packet->dev;

	return device->qdisc == device->_tx->qdisc ? 0 : device->real_num_tx_queues;
}

/*
 * Packets that the port's qdisc dropped so far. A multiqueue root updates its sum only when it is
 * dumped, so the qdiscs below it are added up.
 */
static __always_inline u32 queue_drops(struct __sk_buff *skb)
{
	if (!has_kernel_view())
		return 0;
	if (queue_count(skb))
		return (u32)queue_sum(skb);

	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);

	return packet->dev->qdisc->qstats.drops;
}

#endif
