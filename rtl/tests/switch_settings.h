// SPDX-License-Identifier: Apache-2.0
// Settings that are allowed and rare: a scheme for a port that cannot send, periods of a few clocks,
// segments of any size, builds without FairQ. What the reset values do to a full queue, and counters
// while frames are lost.
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
            b.send(0, b.frame(0, 1, 590)); // more than a word: one alone leaves the queue at once
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

// Data to port 0, which cannot send, beyond its buffer.
static void fill_queue(Bench &b, u32 frames, u8 tos = 0) {
    b.stopped = 1;
    for (u32 k = 0; k < frames; k++) {
        Frame f = b.frame(1, 0, 1514);
        f[15] = tos;
        set_word(f, 24, 0), set_word(f, 24, ~sum_words(f, 14, 34));
        b.send(1, f);
    }
    b.wait(frames * 1514 / WORD_BYTES + frames * 100 + 500);
}

// With the reset values and the default buffer each scheme leaves the room that it is made for: HSCC
// for SYNs, HCF for new flows.
static void test_reset_values(Bench &b) {
    for (u32 scheme : {2, 3}) {
        if (!is_built(scheme))
            continue;
        b.restart();
        b.learn();
        b.may_change = b.may_lose = b.by_flow = true;
        b.set(0, "port_scheme", scheme);
        b.wait(1000);
        u64 left = b.left[0], syns = b.syns[0];
        fill_queue(b, 60);
        u32 fresh = scheme == 2 ? 2 : 5; // 41 frames are below sigma; then 3462 bytes are free
        for (u32 flow = 1; flow <= fresh; flow++)
            b.send(1, b.frame(1, 0, 1000, TCP_FLAG_SYN, flow));
        b.wait(2000);
        if (scheme == 2)
            check(b.get(0, "counter_data_dropped"), 60 - 41, "data dropped", "HSCC's sigma");
        b.stopped = 0;
        b.run_empty();
        check(b.syns[0] - syns, fresh, "SYNs left", scheme == 2 ? "HSCC's sigma" : "HCF's low queue");
        check(b.left[0] - left < 60, 1, "frames are lost", "a full queue");
        b.may_change = b.may_lose = b.by_flow = false;
    }
    b.restart();
}

// Frames with ECT that find a queue are marked, and those that left with the mark are counted: not
// those that were lost, and each of those that arrive in the same clock.
static void test_marks(Bench &b) {
    b.restart();
    b.learn();
    b.may_change = b.may_lose = true;
    b.set(0, "port_ecn_threshold_bytes", 1);
    for (u32 round = 0; round < 2; round++) {
        u64 left = b.left[0], marked = b.marked[0];
        u32 counted = b.get(0, "counter_ecn_marks");
        fill_queue(b, 60, 2);
        b.stopped = 0;
        for (u32 k = 0; k < 40; k++)
            for (int i = 1; i < PORTS; i++) {
                Frame f = b.frame(i, 0, 60 + b.r.below(2) * 200);
                f[15] = 1;
                set_word(f, 24, 0), set_word(f, 24, ~sum_words(f, 14, 34));
                b.send(i, f);
            }
        b.run_empty();
        marked = b.marked[0] - marked;
        check(marked > 40, 1, "frames left with a mark", "an overload");
        check(b.left[0] - left < 60u + 40 * (PORTS - 1), 1, "frames are lost", "an overload");
        check(b.get(0, "counter_ecn_marks") - counted, marked, "marks counted", "an overload");
    }
    // Two inputs whose frames end in the same clock, with others before them that go elsewhere.
    if (PORTS > 2) {
        u64 marked = b.marked[0];
        u32 counted = b.get(0, "counter_ecn_marks");
        b.stopped = 1;
        b.send(3, b.frame(3, 0, 300));
        b.wait(500);
        for (int k = 0; k < 10; k++) {
            b.send(1, b.frame(1, 2, 600)), b.send(2, b.frame(2, 1, 600));
            for (int i = 1; i < 3; i++) {
                Frame f = b.frame(i, 0, 100);
                f[15] = 2;
                set_word(f, 24, 0), set_word(f, 24, ~sum_words(f, 14, 34));
                b.send(i, f);
            }
            b.wait(400);
        }
        b.stopped = 0;
        b.run_empty();
        check(b.marked[0] - marked, 20, "frames left with a mark", "two inputs");
        check(b.get(0, "counter_ecn_marks") - counted, 20, "marks counted", "two inputs");
    }
    b.may_change = b.may_lose = false;
    b.restart();
}

// What enters by port 0 is counted as bpf/port.h does: SYNs are ACKs, too; of RSTs the window means
// nothing; the scale in a window's upper bits is no part of it.
static void test_counts(Bench &b) {
    struct Case {
        u8 flags;
        u16 window;
        u32 source, acks, zeros, syns;
    };
    b.restart();
    b.learn();
    b.may_change = true;
    for (const Case &c : std::initializer_list<Case>{
             {0x10, 0, 1, 1, 1, 0},      {0x10, 5, 1, 1, 0, 0},      {0x14, 0, 1, 1, 0, 0},
             {0x04, 0, 1, 0, 0, 0},      {0x02, 0, 1, 1, 1, 1},      {0x12, 9, 1, 1, 0, 1},
             {0x01, 0, 1, 0, 0, 0},      {0x10, 0x7000, 1, 1, 0, 0}, {0x10, 0x7000, 2, 1, 1, 0},
             {0x10, 0x7001, 2, 1, 0, 0}, {0x12, 0x7000, 2, 1, 0, 1}, {0x16, 0, 2, 1, 0, 1}}) {
        std::string where = "flags " + std::to_string(c.flags) + ", window " +
                            std::to_string(c.window) + ", source " + std::to_string(c.source);
        if (is_built(1) || is_built(2))
            b.set(0, "window_wscale_source", c.source);
        else if (c.source != WSCALE_RESERVED_BITS) // no such register
            continue;
        u32 acks = b.get(0, "counter_acks"), zeros = b.get(0, "counter_zero_windows");
        u32 syns = b.get(0, "counter_syns");
        for (int k = 0; k < 3; k++) {
            Frame f = b.frame(0, 1, 60, c.flags);
            set_word(f, 48, c.window);
            b.send(0, f);
        }
        b.run_empty();
        check(b.get(0, "counter_acks") - acks, 3 * c.acks, "ACKs", where);
        check(b.get(0, "counter_zero_windows") - zeros, 3 * c.zeros, "zero windows", where);
        check(b.get(0, "counter_syns") - syns, 3 * c.syns, "SYNs", where);
    }
    b.may_change = false;
    b.restart();
}

static void test_settings(Bench &b) {
    b.restart();
    test_reset_values(b);
    test_counts(b);
    if (is_built(1) || is_built(2))
        test_marks(b);
    if (PORTS > 2)
        test_stopped(b);
    if (is_built(2))
        test_clamp(b);
    if (is_built(1))
        test_short_interval(b);
    if (is_built(3))
        test_short_periods(b);
}
