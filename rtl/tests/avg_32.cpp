// SPDX-License-Identifier: Apache-2.0
// The mean of 32 samples against fairq_on_sample, with idle clocks and resets, latency 3.
#include "Vavg_32.h"
#include "bench.h"

int main(int argc, char **argv) {
    Clocked<Vavg_32> b;
    Random r(4);
    fairq_state s{};
    u64 before = 0;
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    b.reset();
    for (int i = 0; i < 10000 * cases; i++) {
        b.block.sample = r.below(2);
        b.block.value = r.any(32);
        u64 due = before;
        before = s.sample_sum / FAIRQ_SAMPLES;
        if (b.block.sample)
            fairq_on_sample(&s, b.block.value);
        b.tick();
        check(b.block.mean, due, "the mean", "avg_32");
        if (r.chance(1)) {
            b.reset();
            s = {};
            before = 0;
        }
    }
    return finish("avg_32", b.clocks);
}
