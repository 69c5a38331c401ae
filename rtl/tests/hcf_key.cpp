// SPDX-License-Identifier: Apache-2.0
// hcf_flow_key: golden vectors and random flows, each 21 clocks after its start, and until the next.
#include "Vhcf_key.h"
#include "bench.h"

constexpr int LATENCY = 21;

int main(int argc, char **argv) {
    Clocked<Vhcf_key> b;
    Random r(12);
    int cases = argc > 1 ? atoi(argv[1]) : 20, number = 0;
    auto ask = [&](u32 seed, u32 source, u32 destination, u16 from, u16 to, int waits) {
        b.block.seed = seed, b.block.source = source, b.block.destination = destination;
        b.block.source_port = from, b.block.destination_port = to;
        b.block.start = 1;
        b.tick();
        b.block.start = 0;
        for (int i = 1; i < waits; i++)
            b.tick();
        return hcf_flow_key(seed, source, destination, from, to);
    };

    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        number++;
        if (line.kind != "flow_key")
            continue;
        ask(line.at("args.seed"), line.at("args.source"), line.at("args.destination"),
            line.at("args.source_port"), line.at("args.destination_port"), LATENCY);
        check(b.block.key, line.at("result"), "the key", "hcf.jsonl:" + std::to_string(number));
    }
    for (int i = 0; i < 2000 * cases; i++) {
        auto any = [&](int waits) {
            return ask(r.any(32), r.next(), r.next(), r.next(), r.next(), waits);
        };
        if (r.chance(20)) // one that the next start cuts short
            any(1 + r.below(LATENCY));
        u32 expected = any(LATENCY);
        for (int idle = r.below(3); idle-- >= 0; b.tick())
            check(b.block.key, expected, "the key", "random");
    }
    return finish("hcf_key", b.clocks);
}
