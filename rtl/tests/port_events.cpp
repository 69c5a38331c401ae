// SPDX-License-Identifier: Apache-2.0
// Events for FairQ, taken as often as it can: ticks on time, and however short the interval is, the
// number of flows and the size of segments. Without FairQ's registers there are no ticks.
#include "Vport_events.h"
#include "bench.h"

constexpr u32 CLOCK_NS = 6, KINDS = 3, FLOWS = 0, SEGMENT = 1, TICK = 2;

struct Bench : Clocked<Vport_events> {
    Random r{19};
    u32 known[KINDS] = {}, seen[KINDS] = {};
    uint64_t now = 0, due = 0;

    // A clock, in which an event may be accepted.
    void step(bool takes, u32 wait_ns) {
        block.now_ns = now;
        block.event_ready = takes;
        block.queue_bytes = r.below(1000);
        block.eval();
        if (block.event_valid && takes) {
            u32 kind = block.event_kind;
            check(kind < KINDS, 1, "an event of this kind", "an event");
            seen[kind]++;
            known[kind] = block.event_value;
            if (kind == TICK) {
                check(wait_ns && now >= due, 1, "a tick that is due", "an event");
                check(block.event_value, block.queue_bytes, "the queue", "a tick");
                due = now + wait_ns;
            }
        }
        tick();
        now += CLOCK_NS;
    }
};

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    for (int c = 0; c < 10 * cases; c++) {
        fairq_params p = fairq_default_params(100000);
        p.interval_ns = b.r.pick<u32>({0, 1, 6, 700, 100000});
        p.sample_interval_ns = b.r.chance(70) ? 0 : p.interval_ns * 2;
        u32 wait_ns = p.sample_interval_ns ? p.sample_interval_ns : p.interval_ns;
        u32 busy = b.r.pick<u32>({1, 3, 30}); // clocks that an event takes
        std::string where = "ticks of " + std::to_string(wait_ns) + " ns";
        set_fairq(b.block.p, p);
        b.block.flows = b.block.segment_bytes = b.known[FLOWS] = b.known[SEGMENT] = 0;
        b.due = 0;
        b.reset();
        for (int i = 0; i < 20; i++) {
            if (b.r.chance(70))
                b.block.flows = b.r.below(1000);
            if (b.r.chance(70))
                b.block.segment_bytes = b.r.below(9000);
            u32 ticks = b.seen[TICK];
            for (u32 k = 0; k < 6 * busy; k++)
                b.step(k % busy == 0, wait_ns);
            check(b.known[FLOWS], b.block.flows, "flows", where);
            check(b.known[SEGMENT], b.block.segment_bytes, "segment size", where);
            if (wait_ns && wait_ns <= CLOCK_NS)
                check(b.seen[TICK] > ticks, 1, "a tick", where);
        }
    }
    check(b.seen[FLOWS] && b.seen[SEGMENT] && b.seen[TICK], 1, "events of each kind", "the end");
    return finish("port_events", b.clocks);
}
