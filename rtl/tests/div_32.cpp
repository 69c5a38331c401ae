// SPDX-License-Identifier: Apache-2.0
// The pipelined divider: a division in every clock, and its latency of 18 clocks.
#include "Vdiv_32.h"
#include "bench.h"

#include <deque>

int main(int argc, char **argv) {
    Clocked<Vdiv_32> b;
    Random r(3);
    std::deque<std::pair<bool, u32>> pipe(17);
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    b.reset();
    for (int i = 0; i < 10000 * cases; i++) {
        u32 a = r.any(32), d = r.chance(2) ? 0 : r.any(32);
        b.block.start = r.chance(90);
        b.block.dividend = a;
        b.block.divisor = d;
        pipe.push_back({b.block.start, d ? a / d : 0xffffffff});
        b.tick();
        check(b.block.done, pipe.front().first, "done after 18 clocks", "div_32");
        if (pipe.front().first)
            check(b.block.quotient, pipe.front().second, "the quotient", "div_32");
        pipe.pop_front();
        if (r.chance(1)) {
            b.reset();
            for (auto &due : pipe)
                due.first = false;
        }
    }
    return finish("div_32", b.clocks);
}
