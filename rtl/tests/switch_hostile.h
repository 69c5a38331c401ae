// SPDX-License-Identifier: Apache-2.0
// What broken and hostile hosts send to the switch.
#pragma once

#include "switch_bench.h"

// Frames that the MAC marked, that are too long or too short never leave; those around them do.
static void test_bad_frames(Bench &b, int frames) {
    b.learn();
    for (int i = 0; i < frames; i++) {
        int input = b.r.below(PORTS), output = (input + 1 + b.r.below(PORTS - 1)) % PORTS;
        b.send(input, b.frame(input, output, b.r.pick<u32>({60, 64, 590, 1514})));
        b.run_empty();
        Frame bad = b.frame(input, output, 60 + b.r.below(1455));
        switch (b.r.below(3)) {
        case 0: b.is_bad = true; break;
        case 1: bad.resize(9019 + b.r.below(30000)); break; // longer than a store, too
        default: bad.resize(1 + b.r.below(31));
        }
        b.waiting[input].push_back(bad);
        b.run_empty();
        b.is_bad = false;
    }
    b.send(0, b.frame(0, 1, 60));
    b.run_empty();
}

// The packets of the datapath's fuzzer: each leaves once by every other port, with each scheme.
static void test_fuzzed(Bench &b, int frames) {
    for (u32 scheme = 0; scheme < 4; scheme++) {
        for (int i = 0; i < PORTS; i++)
            b.set(i, "port_scheme", scheme);
        b.wait(500);
        b.may_change = scheme != 0;
        for (int i = 0; i < frames; i++) {
            Frame f = fuzzed()[b.r.below(fuzzed().size())];
            int input = b.r.below(PORTS);
            memset(&f[0], 255, 6);
            memset(&f[6], 0, 6);
            f[11] = input;
            if (f.size() >= 32)
                b.send(input, f);
            else
                b.waiting[input].push_back(f);
            b.wait(WORD_BYTES * 3 > f.size() ? 200 : 8 * f.size() / WORD_BYTES);
            if (scheme == 3) // HCF keeps the order of each flow only
                b.run_empty();
        }
        b.run_empty();
        b.may_change = false;
    }
    for (int i = 0; i < PORTS; i++)
        b.set(i, "port_scheme", 0);
    b.wait(500);
}

// The window in ACKs that enter by port 0, after the frames that are under way.
static u32 window_of_ack(Bench &b) {
    b.wait(2000);
    b.window = 0;
    Frame ack = b.frame(0, 1, 60);
    set_word(ack, 48, 65535);
    b.send(0, ack);
    b.run_empty();
    return b.window;
}

// Forged SYN-ACKs raise FairQ's count: windows fall to the floor of a segment, never below, and are
// back once the port was idle. SYNs count nothing, FINs and RSTs do not take it below zero.
static void test_floods(Bench &b, int frames) {
    b.learn();
    b.may_change = true;
    b.set(0, "window_idle_ns", 1000000); // 156,250 clocks
    b.set(0, "port_scheme", 1);
    b.wait(500);
    u32 before = window_of_ack(b), floor = b.get(0, "fairq_mss_bytes");
    auto flood = [&](u8 flags) {
        for (int i = 0; i < frames; i++)
            b.send(1, b.frame(1, 0, 60, flags, i));
        b.run_empty();
    };
    for (u8 flags : {0x02, 0x14, 0x11, 0x04, 0x01}) {
        flood(flags);
        check(window_of_ack(b), before, "the window", "a flood that counts nothing");
    }
    flood(0x12);
    u32 lowest = window_of_ack(b);
    check(lowest < before, 1, "windows fall", "forged SYN-ACKs");
    check(lowest >= floor, 1, "at least a segment", "forged SYN-ACKs");
    for (int i = 0; i < 160000; i++)
        b.step();
    check(window_of_ack(b), before, "the window", "an idle port");
    b.set(0, "port_scheme", 0);
    b.set(0, "window_idle_ns", registers[index_of("window_idle_ns")].reset);
    b.wait(500);
    b.may_change = false;
}

static void test_hostile(Bench &b, int cases) {
    test_bad_frames(b, 5 * cases);
    test_fuzzed(b, 10 * cases);
    test_floods(b, 30 * cases);
}
