// SPDX-License-Identifier: Apache-2.0
// Settings that are allowed and rare: a scheme for a port that cannot send, periods of a few clocks,
// segments of any size, builds without FairQ.
#pragma once

#include "switch_bench.h"

// A port that has to send its queue before its scheme may change drops what would join it: frames
// behind those go on to other ports.
static void test_stopped(Bench &b) {
    u32 last = PORTS - 1;
    for (u32 before = 0; before < 4; before++) {
        for (u32 after = 0; is_built(before) && after < 4; after++) {
            if (!is_built(after))
                continue;
            b.may_change = true;
            b.learn();
            b.set(1, "port_scheme", before);
            b.wait(500);
            b.stopped = 1 << 1;
            b.send(0, b.frame(0, 1, 60));
            b.wait(500);
            b.set(1, "port_scheme", after);
            b.wait(100);
            b.may_lose = true;
            b.send(0, b.frame(0, 1, 60));
            b.send(0, b.frame(0, last, 60));
            b.send(last, b.frame(last, 255, 60));
            b.send(last, b.frame(last, 0, 60));
            u64 left_0 = b.left[0], left_last = b.left[last];
            b.wait(2000);
            check(b.left[0] - left_0, 2, "frames that left by port 0", "port 1 stopped");
            check(b.left[last] - left_last, 1, "frames that left by the last port", "port 1 stopped");
            b.stopped = 0;
            u64 left = b.left[1];
            b.run_empty();
            check(b.left[1] - left, 1, "frames that left by port 1", "port 1 sends again");
            b.may_lose = b.may_change = false;
            b.wait(500);
            b.send(0, b.frame(0, 1, 60));
            b.run_empty();
        }
    }
    b.set(1, "port_scheme", 0);
    b.wait(500);
}

// The window that HSCC at port 0 leaves an ACK while its queue clamps.
static u32 clamped_window(Bench &b) {
    b.stopped = 1;
    b.send(1, b.frame(1, 0, 60));
    b.wait(500);
    b.window = 0;
    b.send(0, b.frame(0, 1, 60));
    b.wait(500);
    u32 window = b.window;
    b.stopped = 0;
    b.run_empty();
    return window;
}

// HSCC learns of flows, with and without FairQ in the build, and of the size of segments.
static void test_clamp(Bench &b) {
    b.restart();
    b.learn();
    b.may_change = true;
    b.set(0, "hscc_alpha1_bytes", 0);
    b.set(0, "hscc_alpha2_bytes", 1);
    b.set(0, "hscc_first_flight_segments", 0);
    b.set(0, "port_scheme", 2);
    b.wait(500);
    check(clamped_window(b), 2920, "the window", "HSCC, no flow");
    for (int i = 0; i < 3; i++)
        b.send(1, b.frame(1, 0, 14 + 40 + 8960));
    b.run_empty();
    check(clamped_window(b), 17920, "the window", "HSCC, segments of 8960 bytes");
    b.set(0, "hscc_buffer_bytes", 4000);
    b.set(0, "port_scheme", 2);
    b.wait(500);
    for (int i = 0; i < 40; i++)
        b.send(0, b.frame(0, 1, 60, 0x12, i));
    b.run_empty();
    b.wait(2000);
    check(clamped_window(b), 1460, "the window", "HSCC, 40 flows in a small buffer");
    b.may_change = false;
    b.restart();
}

// FairQ learns of flows between ticks that are due all the time.
static void test_short_interval(Bench &b) {
    b.restart();
    b.learn();
    b.may_change = true;
    b.set(0, "fairq_interval_ns", 1);
    b.set(0, "port_scheme", 1);
    for (int i = 0; i < 40; i++)
        b.send(0, b.frame(0, 1, 60, 0x12, i));
    b.run_empty();
    b.wait(20000);
    b.send(0, b.frame(0, 1, 60));
    b.run_empty();
    check(b.window < 10000, 1, "the window is lower", "FairQ, 40 flows");
    b.may_change = false;
    b.restart();
}

// HCF's periods of a nanosecond; where the queue's end is the period's, the length means nothing.
static void test_short_periods(Bench &b) {
    b.restart();
    b.set(1, "hcf_every_ns", 1);
    b.wait(20000); // the period of before ends
    for (u32 period = 0; period < 3; period++) {
        b.set(1, "hcf_period", period);
        b.set(1, "port_scheme", 3);
        b.wait(500);
        b.learn();
        for (int i = 0; i < 20; i++)
            b.send(0, b.frame(0, 1, 60));
        b.run_empty();
    }
    b.restart();
}

static void test_settings(Bench &b) {
    b.restart();
    if (PORTS > 2)
        test_stopped(b);
    if (is_built(2))
        test_clamp(b);
    if (is_built(1))
        test_short_interval(b);
    if (is_built(3))
        test_short_periods(b);
}
