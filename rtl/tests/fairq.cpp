// SPDX-License-Identifier: Apache-2.0
// FairQ in lockstep with core/fairq.h: golden vectors, then random parameters, events and ACKs,
// with ACKs asked in every clock, also while an event is in work, and resets in its middle.
#include "Vwindow_scheme.h"
#include "Vwindow_scheme___024root.h"
#include "bench.h"

#include <algorithm>

enum { FLOWS, MSS, TICK, SENT, SAMPLE, INTERVAL };
constexpr int LATENCY = 14;

struct Answer {
    bool is_asked;
    tcp_window window;
};

struct Bench : Clocked<Vwindow_scheme> {
    fairq_state s{};
    fairq_params p{};
    std::vector<Answer> pipe = std::vector<Answer>(LATENCY);
    std::string where;
    uint64_t now = 0;

    void step() {
        block.now_ns = now;
        tick();
        Answer due = pipe.front();
        pipe.erase(pipe.begin());
        pipe.push_back({});
        if (!due.is_asked)
            return;
        check(block.lowered, due.window.window, "the window", where);
        check(block.changed, due.window.changed, "changed", where);
        check(block.floored, due.window.floored, "floored", where);
    }
    void ask(u16 window, u32 scale, u32 mss, u32 kind) {
        block.window = window;
        block.scale = scale;
        block.mss_bytes = mss;
        block.kind = kind;
        pipe.back() = {true, fairq_on_ack(&s, &p, window, scale, mss, kind, now)};
    }
    // `pipe.back()` is what this clock takes in, and comes out LATENCY clocks later.
    void ask_random(Random &r) {
        ask(r.pick<u16>({0, 1, 2, 64, 2000, 65535, (u16)r.next()}),
            r.pick<u32>({0, 7, 10, 14, 15, 255, (u32)r.below(256)}),
            r.pick<u32>({0, 0, 1, 536, 1448, 8948, 65535}), r.below(3));
    }
    void prepare(const fairq_params &params, const std::string &name) {
        p = params;
        where = name;
        fairq_init(&s, &p);
        set_fairq(block.fairq_p, p);
        block.scheme = 1;
        block.event_valid = 0;
        pipe.assign(LATENCY, {});
        reset();
        while (!block.event_ready)
            step();
    }
    void drain() {
        for (int i = 0; i < LATENCY; i++)
            step();
    }
    void compare() {
        const auto &d = *block.rootp;
#define SIGNAL(name) d.window_scheme__DOT__g_fairq__DOT__fairq_port__DOT__##name
        check(SIGNAL(window_q8), s.window_q8, "window_q8", where);
        check((int64_t)(SIGNAL(gamma_q8) << 16) >> 16, s.gamma_q8, "gamma_q8", where);
        check(SIGNAL(flows), s.flows, "flows", where);
        check(SIGNAL(mss), s.mss_bytes, "mss", where);
        check(SIGNAL(ticks), s.ticks, "ticks", where);
        check(SIGNAL(in_slow_start), s.in_slow_start, "in_slow_start", where);
        check(SIGNAL(target_bytes), s.target_bytes, "target_bytes", where);
        check(SIGNAL(sent_bytes), s.sent_bytes, "sent_bytes", where);
        check(SIGNAL(sent_before_bytes), s.sent_before_bytes, "sent_before_bytes", where);
        check(SIGNAL(round_ns), s.round_ns, "round_ns", where);
        check(SIGNAL(round_total), s.round_total, "round_total", where);
        check(SIGNAL(update_age_ns), s.update_age_ns, "update_age_ns", where);
        check(block.window_bytes, fairq_window_bytes(&s, &p), "window_bytes", where);
    }
    // An event in both; with ACKs meanwhile if `r`. Ends early by a reset if `is_cut`.
    void event(int kind, u32 value, u64 total, Random *r = nullptr, bool is_cut = false) {
        block.event_kind = kind;
        block.event_value = value;
        block.event_total = total;
        block.event_valid = 1;
        int i = 0;
        do {
            if (r)
                ask_random(*r);
            step();
            block.event_valid = 0;
            if (is_cut && i == 40)
                return;
            check(i < 500, 1, "done in 500 clocks", where);
            i++;
        } while (!block.event_done);
        switch (kind) {
        case FLOWS: fairq_on_flows(&s, value); break;
        case MSS: fairq_on_mss(&s, value); break;
        case TICK: fairq_on_tick(&s, &p, value, total, now); break;
        case SENT: fairq_on_sent(&s, &p, total, now); break;
        case SAMPLE: fairq_on_sample(&s, value); break;
        case INTERVAL: fairq_on_interval(&s, &p, value); break;
        }
        compare();
    }
};

static void golden(Bench &b, const char *path) {
    int number = 0;
    for (const Line &line : Vectors::read(path)) {
        b.where = "fairq.jsonl:" + std::to_string(++number);
        auto arg = [&](const char *name) { return line.at(std::string("args.") + name); };
        if (line.is_case) {
            fairq_params p = fairq_default_params(1);
#define FIELD(name) p.name = line.at("params." #name)
            FIELD(interval_ns), FIELD(buffer_bytes), FIELD(alpha_q16), FIELD(intervals);
            FIELD(mss_bytes), FIELD(paths), FIELD(slow_start), FIELD(flow_rule);
            FIELD(floor_segments), FIELD(first_floor_segments), FIELD(rounds_down);
            FIELD(longest_rtt_ns), FIELD(sample_interval_ns);
            b.now = 0;
            b.prepare(p, b.where);
            continue;
        }
        if (line.has("args.now_ns"))
            b.now = arg("now_ns");
        if (line.kind == "ack") {
            b.ask(arg("window"), arg("scale"), arg("mss_bytes"), arg("kind"));
            check(b.pipe.back().window.window, line.at("result.window"), "core's", b.where);
            b.drain();
            b.step();
        } else if (line.kind == "flow") {
            b.event(FLOWS, std::max<int64_t>(b.s.flows + arg("delta"), 0), 0);
        } else if (line.kind == "mss") {
            b.event(MSS, arg("mss_bytes"), 0);
        } else if (line.kind == "sent") {
            b.event(SENT, 0, arg("total_bytes"));
        } else if (line.kind == "sample") {
            b.event(SAMPLE, arg("queue_bytes"), 0);
        } else if (line.kind == "interval") {
            b.event(INTERVAL, arg("queue_bytes"), 0);
        } else if (line.kind == "tick") {
            b.event(TICK, arg("queue_bytes"), arg("total_bytes"));
        } else {
            check(0, 1, "an event of this kind", b.where);
        }
        check(b.s.window_q8, line.at("state.window_q8"), "core's window, and the vector's", b.where);
    }
}

static fairq_params any_params(Random &r) {
    fairq_params p = r.chance(50) ? fairq_default_params(1 + r.any(32) % 0xffffffff)
                                  : fairq_paper_params(1 + r.any(31));
    p.mss_bytes = 1 + r.any(16) % 65535;
    p.interval_ns = 1 + r.any(30);
    p.longest_rtt_ns = r.chance(70) ? r.any(30) : 0;
    p.sample_interval_ns = r.chance(40) ? r.any(28) : 0;
    if (r.chance(60))
        p.alpha_q16 = 1 + r.below(65536);
    if (r.chance(60))
        p.intervals = 1 + r.any(16) % 65535;
    p.slow_start = r.below(3);
    p.flow_rule = r.below(2);
    p.floor_segments = r.any(8);
    p.first_floor_segments = r.any(8);
    p.rounds_down = r.below(2);
    p.paths = r.chance(30) ? 1 + r.any(16) % 65535 : 1;
    if (r.chance(50))
        p.intervals = 1 + r.below(4);
    return p;
}

int main(int argc, char **argv) {
    Bench b;
    Random r(1);
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    if (argc > 2)
        golden(b, argv[2]);
    for (int c = 0; c < cases; c++) {
        uint64_t total = r.next();
        b.now = r.any(50);
        b.prepare(any_params(r), "random case " + std::to_string(c));
        for (int e = 0; e < 300; e++) {
            int kind = r.pick<int>({FLOWS, MSS, TICK, TICK, TICK});
            u32 value = kind == FLOWS ? (r.chance(60) ? b.s.flows + r.below(5) - 2 : r.any(26))
                        : kind == MSS ? r.any(17)
                                      : r.any(32);
            if (kind == TICK && r.chance(50))
                value = r.below(2 * (uint64_t)b.s.target_bytes) & 0xffffffff;
            b.now += r.any(31);
            total += r.any(40);
            if (r.chance(1)) { // a reset in the middle of an event
                b.event(kind, value, total, &r, true);
                b.prepare(b.p, b.where);
            } else {
                b.event(kind, value, total, &r);
            }
        }
        b.drain();
    }
    return finish("fairq", b.clocks);
}
