/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An eBPF program that calls the whole of core/; only compiled, by fuzz.rs. */

#define GRANT_FLOWS 4096u

#include "grant.h"
#include "handshake.h"
#include "hcf.h"
#include "schemes.h"
#include "sicc.h"

struct ports {
	struct scheme_states states;
	struct scheme_params params;
	struct window_params window;
	struct sicc_params sicc_params;
	struct sicc_port sicc;
	struct sicc_pair pair;
	struct hcf_params hcf_params;
	struct hcf_state hcf;
	struct flow_entry flow;
	struct handshake handshake;
	struct flow_packet packet;
	struct port_segments segments;
	struct tcp_edge edge;
	u64 now_ns;
	u32 queue_bytes;
	u32 flows;
	u32 key;
	u16 field;
};

#define STATE_OF(name)	(&p->states.name)
#define PARAMS_OF(name) (&p->params.name)

#define ON_ACK(name, NAME, ...)                                                                    \
	name##_on_flows(STATE_OF(name), p->flows);                                                 \
	out = name##_on_ack(STATE_OF(name), PARAMS_OF(name), out.window, scale, mss, kind,         \
			    p->now_ns);

__attribute__((section("tc"), used)) static int on_ack(struct ports *p)
{
	s32 delta = flow_follow(&p->flow, &p->handshake, &p->packet).flows;
	u32 scale = flow_scale(&p->flow, FLOW_ACKS), mss = flow_mss(&p->flow, p->segments.bytes);
	u32 kind = flow_ack_kind(&p->flow, p->packet.flags, window_first_acks(&p->window));
	struct tcp_window out = tcp_window_as_is(p->field);

	p->flows += (u32)delta;
	WINDOW_SCHEMES(ON_ACK)
	out = sicc_pair_on_ack(&p->pair, &p->sicc_params, out.window, scale, kind, p->now_ns);
	out = tcp_keep_edge(&p->edge, p->key, p->field, scale, out);
	return tcp_checksum_update(0, p->field, out.window);
}

#define ON_TICK(name, NAME, ...)                                                                   \
	name##_on_queue(STATE_OF(name), PARAMS_OF(name), p->queue_bytes, p->now_ns);               \
	name##_on_tick(STATE_OF(name), PARAMS_OF(name), p->queue_bytes, p->now_ns, p->now_ns);

__attribute__((section("tc"), used)) static int on_tick(struct ports *p)
{
	p->flows += (u32)flow_expire(&p->flow, p->now_ns, window_idle_ns(&p->window));
	WINDOW_SCHEMES(ON_TICK)
	hcf_on_tick(&p->hcf, &p->hcf_params);
	return (int)sicc_on_interval(&p->sicc, &p->sicc_params, p->queue_bytes, p->now_ns);
}

#define INIT(name, NAME, ...) name##_init(STATE_OF(name), PARAMS_OF(name));

__attribute__((section("tc"), used)) static int on_start(struct ports *p)
{
	WINDOW_SCHEMES(INIT)
	hcf_init(&p->hcf, &p->hcf_params, p->key);
	return 0;
}

#define ON_DATA(name, NAME, ...)                                                                   \
	name##_on_mss(STATE_OF(name), p->segments.bytes);                                          \
	drops |= name##_drops(PARAMS_OF(name), p->queue_bytes, 1500, 0);

__attribute__((section("tc"), used)) static int on_packet(struct ports *p)
{
	u32 queue = hcf_on_enqueue(&p->hcf, &p->hcf_params, p->key, p->queue_bytes);
	_Bool drops = 0;

	hcf_departed(&p->hcf, &p->hcf_params, hcf_on_dequeue(&p->hcf), p->queue_bytes);
	segment_on_data(&p->segments, p->packet.payload, p->key & 1, p->now_ns);
	WINDOW_SCHEMES(ON_DATA)
	return (int)queue + drops;
}

struct grant_ports {
	struct grant_params params;
	struct grant_port port;
	struct grant_packet packet;
	struct grant_opening opening;
	struct grant_action action;
	u32 index;
	u32 queue_bytes;
	struct grant_flow flows[GRANT_FLOWS];
};

__attribute__((section("tc"), used)) static int on_grant_ack(struct grant_ports *p)
{
	if (!p->index)
		p->index = grant_begin(&p->port, &p->params, p->flows, &p->packet, &p->opening);
	p->packet.window =
		grant_on_ack(&p->port, &p->params, p->flows, p->index, &p->packet, p->queue_bytes);
	p->action = grant_next(&p->port, &p->params, p->flows, p->queue_bytes, p->packet.now_ns);
	return grant_is_open(p->flows, p->index);
}

__attribute__((section("tc"), used)) static int on_grant_data(struct grant_ports *p)
{
	grant_on_bytes(&p->port, &p->params, p->packet.payload, p->packet.now_ns);
	grant_on_data(&p->port, &p->params, p->flows, p->index, &p->packet);
	p->action = grant_next(&p->port, &p->params, p->flows, p->queue_bytes, p->packet.now_ns);
	return 0;
}

__attribute__((section("tc"), used)) static int on_grant_timer(struct grant_ports *p)
{
	p->action =
		grant_on_timer(&p->port, &p->params, p->flows, p->queue_bytes, p->packet.now_ns);
	grant_learn(&p->port, &p->params);
	return (int)grant_tick_ns(&p->port, &p->params);
}

__attribute__((section("tc"), used)) static int on_grant_start(struct grant_ports *p)
{
	grant_init(&p->port, &p->params, p->packet.now_ns, 0);
	grant_close(&p->port, p->flows, p->index);
	return 0;
}
