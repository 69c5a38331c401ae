// SPDX-License-Identifier: Apache-2.0
// tcp_checksum_update: golden vectors and random words, one in every clock, latency 2.
#include "Vtcp_checksum.h"
#include "bench.h"

int main(int argc, char **argv) {
    Clocked<Vtcp_checksum> b;
    Random r(6);
    int cases = argc > 1 ? atoi(argv[1]) : 20, line_number = 0, number = 0;
    u16 last = 0;
    auto put = [&](u16 checksum, u16 from, u16 to, u16 due, const std::string &where) {
        b.block.checksum = checksum, b.block.old_word = from, b.block.new_word = to;
        b.tick();
        if (number++)
            check(b.block.updated, last, "the checksum", where);
        last = due;
    };

    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        line_number++;
        if (line.kind == "checksum_update")
            put(line.at("args.checksum"), line.at("args.old"), line.at("args.new"),
                line.at("result"), "tcp_rewrite.jsonl:" + std::to_string(line_number));
    }
    for (int i = 0; i < 50000 * cases; i++) {
        u16 checksum = r.any(16), from = r.any(16), to = r.any(16);
        put(checksum, from, to, tcp_checksum_update(checksum, from, to), "random");
    }
    return finish("tcp_checksum", b.clocks);
}
