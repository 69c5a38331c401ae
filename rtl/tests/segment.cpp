// SPDX-License-Identifier: Apache-2.0
// core/segment.h for a port: golden vectors and random segments, one in every clock.
#include "Vsegment.h"
#include "bench.h"

int main(int argc, char **argv) {
    Clocked<Vsegment> b;
    Random r(9);
    port_segments port{};
    int cases = argc > 1 ? atoi(argv[1]) : 20, number = 0;
    auto put = [&](u32 bytes, bool is_full, uint64_t now) {
        b.block.valid = 1;
        b.block.size_bytes = bytes < MAX_MSS_BYTES ? bytes : MAX_MSS_BYTES;
        b.block.is_full = is_full;
        b.block.now_ns = now;
        segment_on_data(&port, bytes, is_full, now);
        b.tick();
    };

    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        std::string where = "segment.jsonl:" + std::to_string(++number);
        if (line.is_case) {
            b.reset();
            continue;
        }
        put(line.at("args.size_bytes"), line.at("args.is_full"), line.at("args.now_ns"));
        check(b.block.bytes, line.at("state.bytes"), "bytes", where);
    }
    b.reset();
    port = {};
    uint64_t now = 0;
    for (int i = 0; i < 20000 * cases; i++) {
        now += r.any(30);
        put(r.any(16), r.chance(60), now);
        check(b.block.bytes, port.bytes, "bytes", "random");
        if (r.chance(1)) {
            b.reset();
            port = {};
        }
    }
    return finish("segment", b.clocks);
}
