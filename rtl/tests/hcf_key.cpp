// SPDX-License-Identifier: Apache-2.0
// hcf_flow_key: golden vectors and random flows, one in every clock, latency 21.
#include "Vhcf_key.h"
#include "bench.h"

#include <deque>

int main(int argc, char **argv) {
    Clocked<Vhcf_key> b;
    Random r(12);
    int cases = argc > 1 ? atoi(argv[1]) : 20, number = 0;
    auto put = [&](u32 seed, u32 source, u32 destination, u16 from, u16 to) {
        b.block.seed = seed, b.block.source = source, b.block.destination = destination;
        b.block.source_port = from, b.block.destination_port = to;
        return hcf_flow_key(seed, source, destination, from, to);
    };

    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        number++;
        if (line.kind != "flow_key")
            continue;
        put(line.at("args.seed"), line.at("args.source"), line.at("args.destination"),
            line.at("args.source_port"), line.at("args.destination_port"));
        for (int i = 0; i < 21; i++)
            b.tick();
        check(b.block.key, line.at("result"), "the key", "hcf.jsonl:" + std::to_string(number));
    }
    std::deque<u32> pipe(20);
    for (int i = 0; i < 20000 * cases; i++) {
        pipe.push_back(put(r.any(32), r.next(), r.next(), r.next(), r.next()));
        b.tick();
        if (i >= 20)
            check(b.block.key, pipe.front(), "the key", "random");
        pipe.pop_front();
    }
    return finish("hcf_key", b.clocks);
}
