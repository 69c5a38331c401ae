/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls every function of core/ with hostile numbers; built with the sanitizers by fuzz.rs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow_counter.h"
#include "grant.h"
#include "handshake.h"
#include "hcf.h"
#include "schemes.h"
#include "sicc.h"

static u64 seed = 1;

/* Numbers of any size, often at the limits of the types. */
static u64 any(void)
{
	static const u64 limits[] = {0,		 1,	     2,		  255,	       256,
				     65535,	 65536,	     0x7fffffffu, 0x80000000u, 0xffffffffu,
				     1ull << 40, ~0ull >> 1, ~0ull};
	u64 bits;

	seed += 0x9e3779b97f4a7c15ull;
	bits = seed * (seed >> 31 | 1);
	bits ^= bits >> 29;
	if (bits & 1)
		return limits[(bits >> 8) % (sizeof(limits) / sizeof(limits[0]))];
	return bits >> (bits >> 1) % 64;
}

static void fill(void *memory, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		((u8 *)memory)[i] = (u8)any();
}

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	exit(1);
}

static void expect_lowered(struct tcp_window out, u16 window)
{
	expect(out.window <= window, "a window is never raised");
	expect(out.changed == (out.window < window),
	       "changed is true exactly if the window is lower");
}

static void expect_kept(struct tcp_window out, u16 window, u32 scale)
{
	u64 was = tcp_window_bytes(window, scale), is = tcp_window_bytes(out.window, scale);

	expect_lowered(out, window);
	/* Floors are at least one segment, which is at least one byte. */
	expect(is >= min_u64(was, 1), "an open window is never closed");
}

static void fuzz_edge(u16 window, u32 scale)
{
	struct tcp_window wanted = tcp_lower_window(window, scale, (u32)any(), (u32)any() | 1);
	struct tcp_window kept;
	struct tcp_edge edge;

	fill(&edge, sizeof(edge));
	kept = tcp_keep_edge(&edge, (u32)any(), window, scale, wanted);
	expect_kept(kept, window, scale);
	expect(kept.window >= wanted.window, "an edge only prevents shrinking");
}

static void fuzz_tcp(void)
{
	u16 window = (u16)any();
	u32 scale = (u32)any();

	fuzz_edge(window, scale);
	expect_kept(tcp_lower_window(window, scale, (u32)any(), (u32)any() | 1), window, scale);
	tcp_checksum_update((u16)any(), (u16)any(), (u16)any());
	tcp_checksum_update_byte((u16)any(), (u32)any(), (u8)any(), (u8)any());
	expect(tcp_reserved_scale(tcp_reserved_put_scale(window, scale)) <= 14, "a scale fits");
	expect(tcp_window12_window(tcp_window12_put(window, scale)) <= window,
	       "12 bits only lower");
	tcp_unify_window(window, scale, (u32)any());
}

/* FairQ as printed has no floor. */
static int may_close(u32 scheme, const void *params)
{
	const struct fairq_params *fairq = params;

	return scheme == SCHEME_FAIRQ && !(fairq->floor_segments && fairq->first_floor_segments);
}

/* Any state and any parameters, which may change while a port lives: an operator does that. */
static void fuzz_scheme(u32 scheme, void *state, size_t state_bytes, void *params,
			size_t params_bytes)
{
	int i;

	fill(params, params_bytes);
	scheme_init(scheme, state, params);
	for (i = 0; i < 300; i++) {
		u16 window = (u16)any();
		u32 scale = (u32)any() & 15, kind = (u32)any() % 3;
		struct tcp_window out;

		if (i % 100 == 99)
			fill(params, params_bytes);
		if (i == 200)
			fill(state, state_bytes);
		if (any() % 8 == 0)
			scheme_on_flows(scheme, state, (u32)any());
		scheme_on_mss(scheme, state, (u32)any());
		scheme_on_queue(scheme, state, params, (u32)any(), any());
		scheme_on_first_ack(scheme, state, params, (u32)any(), (u16)any(), (u32)any(),
				    (u32)any(), (u32)any(), any());
		scheme_on_tick(scheme, state, params, (u32)any(), any(), any());
		scheme_heeds_queue(scheme, state, params, (u32)any(), any());
		scheme_is_clamping(scheme, state, params, any());
		scheme_tick_ns(scheme, params);
		scheme_drops(scheme, params, (u32)any(), (u32)any(), any() & 1);
		expect(scheme_counting(scheme, params) <= COUNTING_NONE, "flows are counted");
		expect(scheme_window_bytes(scheme, state, params) <= TCP_MAX_WINDOW,
		       "the window is bounded");
		out = scheme_on_ack(scheme, state, params, window, scale, (u32)any(), kind, any());
		expect_lowered(out, window);
		if (!may_close(scheme, params))
			expect_kept(out, window, kind == TCP_ACK_SYN ? 0 : scale);
	}
}

#define FUZZ(name, NAME, ...)                                                                      \
	{                                                                                          \
		struct name##_state state;                                                         \
		struct name##_params params;                                                       \
                                                                                                   \
		fuzz_scheme(SCHEME_##NAME, &state, sizeof(state), &params, sizeof(params));        \
	}

static void fuzz_fairq(void)
{
	struct fairq_params params;
	struct fairq_state state;
	int i;

	fill(&params, sizeof(params));
	fairq_init(&state, &params);
	for (i = 0; i < 300; i++) {
		fairq_on_flows(&state, (u32)any());
		fairq_on_sample(&state, (u32)any());
		fairq_on_interval(&state, &params, (u32)any());
		expect(state.window_q8 <= FAIRQ_MAX_WINDOW_Q8, "the window is bounded");
	}
}

static void fuzz_sicc(void)
{
	struct sicc_params params, usable;
	struct sicc_port port = {0};
	struct sicc_pair pair = {0};
	int i;

	fill(&params, sizeof(params));
	for (i = 0; i < 100; i++) {
		u16 window = (u16)any();
		u32 scale = (u32)any() & 15, kind = (u32)any() % 3;

		sicc_on_packet(&port, &params, (u32)any(), any());
		if (any() % 4 == 0)
			sicc_on_interval(&port, &params, (u32)any(), any());
		expect(port.queue_q8 >> 8 <= 0xffffffffu, "the mean is a queue length");
		sicc_pair_on(&pair, &params, (u16)any(), (u32)any(), any());
		sicc_pair_on_ack(&pair, &params, window, scale, kind, any());
		usable = params;
		usable.pair_scale = usable.rounds_down = 0;
		expect_kept(sicc_pair_on_ack(&pair, &usable, window, scale, kind, any()), window,
			    kind == TCP_ACK_SYN ? 0 : scale);
	}
}

static void fuzz_hcf(void)
{
	static struct hcf_state state;
	struct hcf_params params;
	int i;

	fill(&params, sizeof(params));
	hcf_init(&state, &params, (u32)any());
	for (i = 0; i < 300; i++) {
		u32 queue = hcf_on_enqueue(&state, &params, (u32)any(), (u32)any());

		expect(queue <= HCF_NONE, "a queue or none");
		queue = hcf_on_dequeue(&state);
		if (any() & 1)
			hcf_departed(&state, &params, queue, (u32)any());
		if (any() % 8 == 0)
			hcf_on_tick(&state, &params);
	}
}

/* A packet as hostile hosts send it: often one that continues what the flow has shown. */
static struct grant_packet grant_any_packet(const struct grant_flow *f, u64 now_ns)
{
	struct grant_packet packet;

	fill(&packet, sizeof(packet));
	packet.now_ns = now_ns;
	if (any() & 1)
		packet.seq = f->seen + (u32)any() % 4;
	if (any() & 1)
		packet.ack = any() & 1 ? f->seen : f->ack;
	if (any() & 1)
		packet.flags = TCP_FLAG_ACK | (any() & 1 ? TCP_FLAG_PSH : 0);
	return packet;
}

static void fuzz_grant(void)
{
	static struct grant_flow flows[GRANT_FLOWS];
	struct grant_port port;
	struct grant_params params;
	struct grant_opening opening;
	u64 now_ns = any();
	int i, k;

	memset(flows, 0, 512 * sizeof(flows[0])); /* more than begin below */
	fill(&params, sizeof(params));
	grant_init(&port, &params, any(), any() & 1);
	for (i = 0; i < 300; i++) {
		u32 index = (u32)any() % port.used, queue = (u32)any();
		struct grant_packet packet = grant_any_packet(&flows[index], now_ns);
		struct grant_action action;

		now_ns += any() & 1 ? any() % 1000000 : any();
		if (i % 100 == 99) {
			fill(&params, sizeof(params));
			grant_configure(&port, &params, any(), any() & 1);
		}
		fill(&opening, sizeof(opening));
		if (any() % 4 == 0)
			index = grant_begin(&port, &params, flows, &packet, &opening);
		grant_syn_window(&port, &params, (u32)any(), (u32)any(), any() & 1, queue, now_ns);
		grant_on_bytes(&port, &params, (u32)any(), now_ns);
		if (any() & 1)
			grant_on_data(&port, &params, flows, index, &packet);
		else
			expect(grant_on_ack(&port, &params, flows, index, &packet, queue) <=
				       packet.window,
			       "credit never raises a window");
		for (k = 0; k < 3; k++) {
			action = any() & 1
					 ? grant_next(&port, &params, flows, queue, now_ns)
					 : grant_on_timer(&port, &params, flows, queue, now_ns);
			expect(!action.flow || grant_is_open(flows, action.flow),
			       "an ACK is of a flow that is followed");
		}
		if (any() % 8 == 0)
			grant_learn(&port, &params);
		if (any() % 16 == 0)
			grant_close(&port, flows, (u32)any() % port.used);
		expect(port.waiting + port.active < port.used, "no flow is lost or made");
	}
}

static void fuzz_flows(void)
{
	struct flow_entry flow;
	struct handshake handshake;
	struct flow_counter counter;
	struct flow_packet packet;
	struct port_segments segments = {0};
	int i;

	fill(&flow, sizeof(flow));
	fill(&handshake, sizeof(handshake));
	fill(&counter, sizeof(counter));
	for (i = 0; i < 100; i++) {
		u32 was = flow_is_counted(&flow);
		s32 delta;

		fill(&packet, sizeof(packet));
		delta = flow_follow(&flow, &handshake, &packet).flows;
		expect((s32)flow_is_counted(&flow) - (s32)was == delta, "counted once");
		flow_expire(&flow, any(), any());
		flow_scale(&flow, (u32)any());
		flow_mss(&flow, (u32)any());
		handshake_mss(&handshake, (u32)any());
		segment_on_data(&segments, (u32)any(), any() & 1, any());
		expect(segments.bytes >= segments.latest, "the largest of two periods");
		flow_ack_kind(&flow, (u32)any(), (u32)any());
		flow_counter_on_packet(&counter, (u32)any(), (u32)any(), any() & 1, any());
		flow_counter_expire(&counter, any(), any());
	}
}

int main(void)
{
	int round;

	for (round = 0; round < 2000; round++) {
		fuzz_tcp();
		fuzz_fairq();
		WINDOW_SCHEMES(FUZZ)
		fuzz_sicc();
		fuzz_hcf();
		fuzz_grant();
		fuzz_flows();
	}
	return 0;
}
