// SPDX-License-Identifier: Apache-2.0
// Resets in the middle of everything, and runts in every clock.
#pragma once

#include "switch_bench.h"

// A reset in clocks of a frame's way, and a few behind it (in each with 40 cases and more), with all ports busy: what was inside
// is gone, nothing of it leaves later, and the switch is as new.
static void test_resets(Bench &b, int cases) {
    u32 clocks = 1514 / WORD_BYTES + 100;
    for (u32 clock = 0; clock < clocks; clock += 1 + b.r.below(40 / cases + 1)) {
        for (int i = 0; i < PORTS; i++)
            b.set(i, "port_scheme", b.r.below(4));
        for (int i = 0; i < PORTS; i++)
            for (int k = 0; k < 3; k++)
                b.send(i, b.frame(i, (i + 1) % PORTS, b.r.pick<u32>({60, 61, 590, 1514})));
        b.busy = b.r.chance(50) ? 30 : 0;
        b.may_change = true;
        b.wait(clock);
        b.may_change = false;
        b.busy = 0;
        b.restart();
        check(b.get(0, "port_scheme"), 0, "the scheme", "a reset");
        check(b.get(0, "counter_ingress_packets"), 0, "the counter", "a reset");
        b.learn();
        for (int i = 0; i < PORTS; i++)
            b.send(i, b.frame(i, (i + PORTS / 2) % PORTS, 60 + b.r.below(100)));
        b.run_empty();
    }
}

// Frames of a word or two in consecutive clocks on all ports: none that is too short leaves, and
// each sound one between them does.
static void test_runts(Bench &b, int cases) {
    b.learn();
    for (int c = 0; c < 10 * cases; c++) {
        for (int i = 0; i < PORTS; i++)
            for (int k = 0; k < 4; k++) {
                for (u32 n = b.r.below(30); n > 0; n--)
                    b.waiting[i].push_back(Frame(1 + b.r.below(c % 2 ? 31 : 8), i));
                b.send(i, b.frame(i, (i + 1 + k % (PORTS - 1)) % PORTS, 60 + b.r.below(8)));
            }
        b.run_empty();
    }
}
