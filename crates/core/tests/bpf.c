/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An eBPF program that calls the whole of core/; only compiled, by fuzz.rs. */

#include "fairq.h"
#include "flow_count.h"
#include "hcf.h"
#include "hscc.h"
#include "sicc.h"

struct ports {
	struct fq_params fq_params;
	struct fq_state fq;
	struct hscc_params hscc_params;
	struct hscc_state hscc;
	struct sicc_params sicc_params;
	struct sicc_port sicc;
	struct sicc_pair pair;
	struct hcf_params hcf_params;
	struct hcf_state hcf;
	struct flow_entry flow;
	struct flow_packet packet;
	struct tcp_edge edge;
	u64 now_ns;
	u32 queue_bytes;
	u32 key;
	u16 window;
};

__attribute__((section("tc"), used)) static int on_ack(struct ports *p)
{
	s32 delta = flow_on_packet(&p->flow, &p->packet);
	u32 scale = flow_scale(&p->flow, FLOW_ACKS), mss = flow_mss(&p->flow);
	u32 kind = flow_ack_kind(&p->flow, p->packet.flags, 3);
	struct tcp_window out;

	fq_on_flow(&p->fq, delta);
	out = fq_on_ack(&p->fq, &p->fq_params, p->window, scale, mss, kind);
	out = hscc_on_ack(&p->hscc, &p->hscc_params, out.window, scale, mss, kind, p->now_ns);
	out = sicc_pair_on_ack(&p->pair, &p->sicc_params, out.window, scale, kind, p->now_ns);
	out = tcp_keep_edge(&p->edge, p->key, p->window, scale, out);
	return tcp_checksum_update(0, p->window, out.window);
}

__attribute__((section("tc"), used)) static int on_tick(struct ports *p)
{
	fq_on_sample(&p->fq, p->queue_bytes);
	fq_on_tick(&p->fq, &p->fq_params, p->queue_bytes);
	fq_on_flow(&p->fq, flow_expire(&p->flow, p->now_ns, FLOW_COUNTER_IDLE_NS));
	hscc_on_queue(&p->hscc, &p->hscc_params, p->queue_bytes, p->now_ns);
	hcf_on_tick(&p->hcf, &p->hcf_params);
	return (int)sicc_on_interval(&p->sicc, &p->sicc_params, p->queue_bytes, p->now_ns);
}

__attribute__((section("tc"), used)) static int on_start(struct ports *p)
{
	fq_init(&p->fq, &p->fq_params);
	hscc_init(&p->hscc);
	hcf_init(&p->hcf, &p->hcf_params, p->key);
	return 0;
}

__attribute__((section("tc"), used)) static int on_packet(struct ports *p)
{
	u32 queue = hcf_on_enqueue(&p->hcf, &p->hcf_params, p->key, p->queue_bytes);

	hcf_departed(&p->hcf, &p->hcf_params, hcf_on_dequeue(&p->hcf), p->queue_bytes);
	fq_on_data(&p->fq, p->packet.payload);
	return (int)queue + hscc_drops(&p->hscc_params, p->queue_bytes, 1500, 0);
}
