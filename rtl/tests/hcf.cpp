// SPDX-License-Identifier: Apache-2.0
// HCF in lockstep with core/hcf.h: golden vectors, then random parameters, flows, ticks and resets
// around real queues: no frame is lost, and with the swap no flow is reordered (HCF Theorem 1).
#include "Vhcf.h"
#include "Vhcf___024root.h"
#include "bench.h"

#include <deque>

struct Packet {
    u32 flow, number;
    u16 size;
};

struct Bench : Clocked<Vhcf> {
    hcf_state s{};
    hcf_params p{};
    std::string where;
    std::deque<Packet> queues[2];

    void prepare(const hcf_params &params, u32 seed) {
        p = params;
        s = {};
        queues[0].clear(), queues[1].clear();
        hcf_init(&s, &p, seed);
        set_hcf(block.p, p);
        block.seed = seed;
        block.op_valid = 0;
        reset();
        for (int i = 0; i < 300 && !block.op_ready; i++)
            tick();
        compare();
    }
    void compare() {
        const auto &d = *block.rootp;
        for (int q = 0; q < 2; q++) {
            check(d.hcf__DOT__packets >> 32 * q & 0xffffffff, s.packets[q], "packets", where);
            check((q ? (uint64_t)(d.hcf__DOT__bytes[2] & 0xffff) << 24 | d.hcf__DOT__bytes[1] >> 8
                     : (uint64_t)(d.hcf__DOT__bytes[1] & 0xff) << 32 | d.hcf__DOT__bytes[0]),
                  s.bytes[q], "bytes", where);
        }
        check(d.hcf__DOT__epoch, s.epoch, "epoch", where);
        check(d.hcf__DOT__high, s.high, "high", where);
        check(block.next_queue, hcf_on_dequeue(&s), "next_queue", where);
        check(block.key_seed, hcf_key_seed(&s), "key_seed", where);
    }
    void operate(u32 kind) {
        block.op_kind = kind;
        block.op_valid = 1;
        block.eval();
        while (!block.op_ready) {
            tick();
            block.eval();
        }
        tick();
        block.op_valid = 0;
        for (int i = 0; kind != 0 && i < 4 && !block.op_ready; i++)
            tick();
    }
    u32 enqueue(u32 key, u16 size) {
        u32 queue = hcf_on_enqueue(&s, &p, key, size);
        block.op_key = key;
        block.op_bytes = size;
        operate(0);
        for (int i = 0; !block.enqueue_done; i++) {
            check(i < 23, 1, "enqueued in 23 clocks", where);
            tick();
        }
        check(block.enqueue_queue, queue, "the queue", where);
        for (int i = 0; i < 8 && !block.op_ready; i++)
            tick();
        compare();
        return queue;
    }
    u32 dequeue(Packet &packet) {
        u32 queue = hcf_on_dequeue(&s);
        if (queue == HCF_NONE)
            return queue;
        packet = queues[queue].front();
        queues[queue].pop_front();
        hcf_departed(&s, &p, queue, packet.size);
        block.op_queue = queue;
        block.op_bytes = packet.size;
        operate(1);
        compare();
        return queue;
    }
    void on_tick() {
        hcf_on_tick(&s, &p);
        operate(2);
        compare();
    }
};

static void golden(Bench &b, const char *path) {
    int number = 0;
    for (const Line &line : Vectors::read(path)) {
        b.where = "hcf.jsonl:" + std::to_string(++number);
        Packet packet;
        if (line.is_case) {
            hcf_params p = hcf_default_params(1);
#define FIELD(name) p.name = line.at("params." #name)
            FIELD(bins), FIELD(credits), FIELD(hashes), FIELD(period), FIELD(swap);
            FIELD(credits_in_bytes), FIELD(drop), FIELD(low_keeps_credits);
            for (int q = 0; q < 2; q++) {
                p.capacity_packets[q] = line.at("params.capacity_packets." + std::to_string(q));
                p.capacity_bytes[q] = line.at("params.capacity_bytes." + std::to_string(q));
            }
            b.prepare(p, line.at("seed"));
        } else if (line.kind == "enqueue") {
            u32 size = line.at("args.size_bytes");
            u32 queue = b.enqueue(line.at("args.key"), size);
            check(queue, line.at("result"), "the vector's queue", b.where);
            if (queue != HCF_NONE)
                b.queues[queue].push_back({0, 0, (u16)size});
        } else if (line.kind == "dequeue") {
            check(b.dequeue(packet), line.at("result"), "the vector's queue", b.where);
        } else if (line.kind == "tick") {
            b.on_tick();
        } else if (line.kind != "flow_key") {
            check(0, 1, "an event of this kind", b.where);
        }
    }
}

int main(int argc, char **argv) {
    Bench b;
    Random r(13);
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    if (argc > 2)
        golden(b, argv[2]);
    for (int c = 0; c < cases; c++) {
        hcf_params p = hcf_default_params(2 + r.below(40));
        p.bins = 1 + r.any(8);
        p.credits_in_bytes = r.below(2);
        p.credits = 1 + r.any(p.credits_in_bytes ? 14 : 3);
        p.hashes = 1 + r.below(4);
        p.period = r.below(3);
        p.swap = r.chance(70);
        p.drop = r.chance(30);
        p.low_keeps_credits = r.chance(30);
        if (r.chance(50))
            p.capacity_bytes[0] = 1500 + r.any(16), p.capacity_bytes[1] = 1500 + r.any(16);
        if (p.capacity_bytes[0] && r.chance(30))
            p.capacity_packets[0] = p.capacity_packets[1] = 0;
        b.where = "random case " + std::to_string(c);
        b.prepare(p, r.next());
        std::map<u32, u32> arrived, left;
        bool keeps_order = p.swap && p.period != HCF_PERIOD_FIXED && p.drop == HCF_DROP_OWN &&
                           !p.low_keeps_credits;
        u32 flows = 1 + r.any(6), load = 30 + r.below(50);
        for (int i = 0; i < 800; i++) {
            Packet packet;
            if (r.chance(load)) {
                u32 flow = r.below(flows), size = 60 + r.below(1455);
                // The key has this period's seed, as in the switch.
                u32 key = hcf_flow_key(hcf_key_seed(&b.s), flow, ~flow, 1, 2);
                u32 queue = b.enqueue(key, size);
                if (queue != HCF_NONE)
                    b.queues[queue].push_back({flow, ++arrived[flow], (u16)size});
            } else if (r.chance(85)) {
                if (b.dequeue(packet) == HCF_NONE || !keeps_order)
                    continue;
                check(packet.number, ++left[packet.flow], "a flow in order", b.where);
            } else {
                b.on_tick();
            }
            if (r.chance(1) && r.chance(10)) {
                b.prepare(p, r.next());
                arrived.clear(), left.clear();
            }
        }
    }
    return finish("hcf", b.clocks);
}
