// SPDX-License-Identifier: Apache-2.0
// The mean of 32 samples against fairq_on_sample, with idle clocks and resets.
#include "Vavg_32.h"
#include "bench.h"

int main(int argc, char **argv) {
    Clocked<Vavg_32> b;
    Random r(4);
    fairq_state s{};
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    b.reset();
    for (int i = 0; i < 10000 * cases; i++) {
        b.block.sample = r.below(2);
        b.block.value = r.any(32);
        if (b.block.sample)
            fairq_on_sample(&s, b.block.value);
        b.tick();
        if (r.chance(1)) {
            b.reset();
            s = {};
        }
        check(b.block.mean, s.sample_sum / FAIRQ_SAMPLES, "the mean", "avg_32");
    }
    return finish("avg_32", b.clocks);
}
