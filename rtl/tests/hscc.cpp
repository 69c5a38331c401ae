// SPDX-License-Identifier: Apache-2.0
// HSCC in lockstep with core/hscc.h: golden vectors, then random parameters, queues, times, ACKs.
// The hardware answers as of the clock before; time stands still while golden vectors are compared.
#include "Vwindow_scheme.h"
#include "bench.h"

constexpr int LATENCY = 14;

struct Bench : Clocked<Vwindow_scheme> {
    hscc_state s{};
    hscc_params p{};
    std::vector<std::pair<bool, tcp_window>> pipe{LATENCY};
    std::string where;
    uint64_t now = 0;

    // FairQ may be busy with an earlier event; HSCC needs the number at once.
    void flows(u32 number) {
        hscc_on_flows(&s, number);
        block.event_valid = 1;
        block.event_kind = 0;
        block.event_value = number;
    }
    void step() {
        block.now_ns = now;
        tick();
        block.event_valid = 0;
        auto due = pipe.front();
        pipe.erase(pipe.begin());
        pipe.push_back({});
        if (!due.first)
            return;
        check(block.lowered, due.second.window, "the window", where);
        check(block.changed, due.second.changed, "changed", where);
        check(block.floored, due.second.floored, "floored", where);
    }
    void prepare(const hscc_params &params) {
        p = params;
        hscc_init(&s, &p);
        set_hscc(block.hscc_p, p);
        block.scheme = 2;
        block.queue_valid = 0;
        block.event_valid = 0;
        pipe.assign(LATENCY, {});
        reset();
    }
    // In a clock: an ACK as of the clock before, then perhaps a reading of the queue.
    void clock(Random &r, uint64_t then, bool reads, u32 queue, u32 packet) {
        u16 window = r.pick<u16>({0, 1, 64, 2000, 65535, (u16)r.next()});
        u32 scale = r.pick<u32>({0, 7, 10, 14, 255, (u32)r.below(256)});
        u32 mss = r.pick<u32>({0, 0, 1, 536, 1448, 8948, 65535}), kind = r.below(3);

        block.window = window, block.scale = scale, block.mss_bytes = mss, block.kind = kind;
        pipe.back() = {true, hscc_on_ack(&s, &p, window, scale, mss, kind, then)};
        block.queue_valid = reads;
        block.queue_bytes = queue;
        block.packet_bytes = packet;
        block.is_control = r.below(2);
        block.eval();
        check(block.drops, hscc_drops(&p, queue, packet, block.is_control) != DATA_PASSES, "drops",
              where);
        if (reads)
            hscc_on_queue(&s, &p, queue, now);
        if (r.chance(5))
            flows(r.pick<u32>({0, 1, 40, 1u << 24, (u32)r.below(1000)}));
        step();
        check(block.is_clamping, hscc_is_clamping(&s, &p, now), "is_clamping", where);
    }
};

static void golden(Bench &b, const char *path) {
    int number = 0;
    for (const Line &line : Vectors::read(path)) {
        b.where = "hscc.jsonl:" + std::to_string(++number);
        auto arg = [&](const char *name) { return line.at(std::string("args.") + name); };
        if (line.is_case) {
            hscc_params p = hscc_default_params(1);
#define FIELD(name) p.name = line.at("params." #name)
            FIELD(buffer_bytes), FIELD(expiry_ns), FIELD(release_interval_ns), FIELD(release_step_bytes);
            FIELD(alpha1_bytes), FIELD(alpha2_bytes), FIELD(sigma_bytes), FIELD(mss_bytes);
            FIELD(floor_segments), FIELD(first_flight_segments), FIELD(cuts);
            b.now = 0;
            b.prepare(p);
            continue;
        }
        b.now = line.at("now_ns");
        for (int i = 0; i < 2000; i++) // the steps of a release that fell due meanwhile
            b.step();
        if (line.kind == "ack") {
            b.block.window = arg("window"), b.block.scale = arg("scale");
            b.block.mss_bytes = arg("mss_bytes"), b.block.kind = arg("kind");
            tcp_window expected{(u16)line.at("result.window"), (u8)line.at("result.changed"),
                                (u8)line.at("result.floored")};
            b.pipe.back() = {true, expected};
            for (int i = 0; i < LATENCY; i++)
                b.step();
        } else if (line.kind == "queue") {
            b.block.queue_valid = 1;
            b.block.queue_bytes = arg("queue_bytes");
            b.step();
            b.block.queue_valid = 0;
        } else if (line.kind == "drops") {
            b.block.queue_bytes = arg("queue_bytes");
            b.block.packet_bytes = arg("packet_bytes");
            b.block.is_control = arg("is_control");
            b.block.eval();
            check(b.block.drops, line.at("result") != DATA_PASSES, "drops", b.where);
        } else if (line.kind == "flow") {
            b.flows(line.at("state.flows"));
        } else if (line.kind != "mss" && line.kind != "tick") {
            check(0, 1, "an event of this kind", b.where);
        }
        b.step();
        check(b.block.is_clamping, line.at("state.is_clamping"), "is_clamping", b.where);
    }
}

int main(int argc, char **argv) {
    Bench b;
    Random r(2);
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    if (argc > 2)
        golden(b, argv[2]);
    for (int c = 0; c < cases; c++) {
        hscc_params p = hscc_default_params(1 + r.any(31));
        p.alpha2_bytes = hscc_alpha2_bytes(&p); // in range, as registers are
        if (r.chance(50)) {
            p.alpha1_bytes = r.any(20);
            p.alpha2_bytes = 1 + p.alpha1_bytes + r.any(18);
            p.sigma_bytes = r.chance(80) ? r.any(32) : 0;
        }
        p.mss_bytes = 1 + r.any(16) % 65535;
        p.floor_segments = 1 + r.below(255);
        p.first_flight_segments = r.chance(70) ? r.below(256) : 0;
        p.release_step_bytes = r.chance(80) ? r.any(32) : 0;
        p.release_interval_ns = 7 + r.any(20);
        p.expiry_ns = r.chance(70) ? 1 + r.any(20) : 0;
        b.where = "random case " + std::to_string(c);
        b.now = r.any(50);
        b.prepare(p);
        int reads = r.pick<int>({1, 10, 50, 100});
        uint64_t then = b.now;
        for (int i = 0; i < 3000; i++) {
            u32 queue = r.chance(50) ? r.below(2 * (uint64_t)p.alpha2_bytes) & 0xffffffff
                                     : r.pick<u32>({0, p.alpha1_bytes, p.alpha2_bytes});
            b.clock(r, then, r.chance(reads), queue, r.any(14));
            then = b.now;
            b.now += 6 + (i % 5 < 2); // 156.25 MHz
            if (r.chance(1) && r.chance(10)) {
                b.prepare(p);
                then = b.now;
            }
        }
    }
    return finish("hscc", b.clocks);
}
