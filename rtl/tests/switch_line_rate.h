// SPDX-License-Identifier: Apache-2.0
// The rate of the line on all ports of the switch at once, and its latency.
#pragma once

#include "switch_bench.h"

// From a frame's last word in to its first word out of an idle switch: 61 in `ingress`, 2 until the
// output has decided, 4 in `output_port`.
constexpr u32 LATENCY = 67;

static void test_latency(Bench &b) {
    b.learn();
    for (u32 size : {60, 590, 1514, 9018}) {
        b.wait(50);
        b.forget_words();
        b.send(0, b.frame(0, 1, size));
        b.run_empty();
        check(b.first_out[1] - b.last_in[0], LATENCY, "latency, clocks", std::to_string(size));
        check(b.gaps(1), 0, "clocks without a word", std::to_string(size));
    }
}

// Every port sends to the next one: each output gets the whole rate of one input.
static void run_ring(Bench &b, const std::vector<u32> &sizes) {
    b.forget_words();
    for (u32 size : sizes)
        for (int i = 0; i < PORTS; i++)
            b.send(i, b.frame(i, (i + 1) % PORTS, size));
    b.run_empty(4000000);
}

static u32 words_of(u32 size) { return (size + WORD_BYTES - 1) / WORD_BYTES; }

// Back to back frames of one size leave back to back, of every size.
static void test_each_size(Bench &b, u32 step) {
    b.learn();
    for (u32 size = 60; size <= 9018; size += size < 200 ? 1 : step) {
        run_ring(b, std::vector<u32>(size < 200 ? 20 : 4, size));
        for (int i = 0; i < PORTS; i++)
            check(b.gaps(i), 0, "clocks without a word", "frames of " + std::to_string(size));
    }
}

// Of different sizes a frame may wait for the end of a longer one, but none longer than that.
static void test_mixed_sizes(Bench &b, int frames) {
    b.learn();
    for (u32 longest : {100u, 600u, 1514u, 9018u}) {
        std::vector<u32> sizes;
        u32 words = 0;
        for (int i = 0; i < frames; i++) {
            sizes.push_back(b.r.chance(50) ? 60 + b.r.below(8) : 60 + b.r.below(longest - 59));
            words += words_of(sizes.back());
        }
        uint64_t begun = b.clocks;
        run_ring(b, sizes);
        for (int i = 0; i < PORTS; i++) {
            check(b.words_out[i], words, "words", "mix");
            check(b.last_out[i] - begun <= words + words_of(longest) + LATENCY, 1,
                  "as late as the longest frame", "mix up to " + std::to_string(longest));
        }
    }
}

// The shortest frames on all ports, with the schemes that decide at once: they change windows, and
// cost no clock.
static void test_shortest(Bench &b, int frames) {
    for (u32 scheme = 0; scheme < 3; scheme++) {
        b.learn();
        for (int i = 0; i < PORTS; i++)
            b.set(i, "port_scheme", scheme);
        b.wait(500);
        b.may_change = scheme != 0;
        run_ring(b, std::vector<u32>(frames, 60));
        for (int i = 0; i < PORTS; i++)
            check(b.gaps(i), 0, "clocks without a word", "scheme " + std::to_string(scheme));
        b.may_change = false;
        for (int i = 0; i < PORTS; i++)
            b.set(i, "port_scheme", 0);
        b.wait(500);
    }
}

static void test_line_rate(Bench &b, int cases) {
    test_latency(b);
    test_each_size(b, 9000 / cases);
    test_mixed_sizes(b, 10 * cases);
    test_shortest(b, 50 * cases);
}
