// SPDX-License-Identifier: Apache-2.0
// core/segment.h for a port: golden vectors and random segments, one in every clock. The hardware
// answers as of the clock before.
#include "Vsegment.h"
#include "bench.h"

int main(int argc, char **argv) {
    Clocked<Vsegment> b;
    Random r(9);
    port_segments port{};
    int cases = argc > 1 ? atoi(argv[1]) : 20, number = 0;
    uint64_t now = 0, then = 0;
    auto put = [&](u32 bytes, bool is_full) {
        b.block.valid = 1;
        b.block.size_bytes = bytes < MAX_MSS_BYTES ? bytes : MAX_MSS_BYTES;
        b.block.is_full = is_full;
        b.block.now_ns = now;
        segment_on_data(&port, bytes, is_full, then);
        b.tick();
        then = now;
    };

    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        std::string where = "segment.jsonl:" + std::to_string(++number);
        if (line.is_case) {
            b.reset();
            continue;
        }
        b.block.now_ns = now = line.at("args.now_ns");
        b.block.valid = 0;
        b.tick();
        put(line.at("args.size_bytes"), line.at("args.is_full"));
        check(b.block.bytes, line.at("state.bytes"), "bytes", where);
    }
    b.reset();
    port = {};
    now = then = 0;
    b.block.now_ns = 0;
    b.block.valid = 0;
    b.tick();
    for (int i = 0; i < 20000 * cases; i++) {
        now += r.any(29); // less than a period
        put(r.any(16), r.chance(60));
        check(b.block.bytes, port.bytes, "bytes", "random");
        if (r.chance(1)) {
            b.reset();
            port = {};
            b.block.valid = 0;
            b.tick();
        }
    }
    return finish("segment", b.clocks);
}
