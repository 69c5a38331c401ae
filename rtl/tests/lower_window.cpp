// SPDX-License-Identifier: Apache-2.0
// tcp_lower_window: golden vectors and random windows, one in every clock, latency 4.
#include "Vlower_window.h"
#include "bench.h"

#include <deque>

constexpr int LATENCY = 4;

static tcp_window put(Clocked<Vlower_window> &b, u16 window, u32 scale, u32 limit, u32 floor) {
    b.block.window = window, b.block.scale = scale, b.block.limit = limit, b.block.floor = floor;
    return tcp_lower_window(window, scale, limit, floor);
}

static void compare(Clocked<Vlower_window> &b, tcp_window due, const std::string &where) {
    check(b.block.lowered, due.window, "the window", where);
    check(b.block.changed, due.changed, "changed", where);
    check(b.block.floored, due.floored, "floored", where);
}

int main(int argc, char **argv) {
    Clocked<Vlower_window> b;
    Random r(5);
    int cases = argc > 1 ? atoi(argv[1]) : 20, number = 0;

    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        number++;
        if (line.kind != "lower_window")
            continue;
        put(b, line.at("args.window"), line.at("args.scale"), line.at("args.limit_bytes"),
            line.at("args.floor_bytes"));
        for (int i = 0; i < LATENCY; i++)
            b.tick();
        compare(b, {(u16)line.at("result.window"), (u8)line.at("result.changed"),
                    (u8)line.at("result.floored")},
                "tcp_rewrite.jsonl:" + std::to_string(number));
    }
    std::deque<tcp_window> pipe;
    for (int i = 0; i < 50000 * cases; i++) {
        pipe.push_back(put(b, r.next(), r.pick<u32>({0, 7, 14, 255, (u32)r.below(256)}), r.any(32),
                           r.any(32)));
        b.tick();
        if (pipe.size() < LATENCY)
            continue;
        compare(b, pipe.front(), "random");
        pipe.pop_front();
    }
    return finish("lower_window", b.clocks);
}
