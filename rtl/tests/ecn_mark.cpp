// SPDX-License-Identifier: Apache-2.0
// Marks against RFC 3168: only ECT packets, only from the threshold on; the checksum of an IPv4
// header with the new word equals that of the header summed again (RFC 1071).
#include "Vecn_mark.h"
#include "bench.h"

static u16 sum(const std::vector<u16> &words) {
    u32 total = 0;
    for (u16 word : words)
        total += word;
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return ~total;
}

int main(int argc, char **argv) {
    Clocked<Vecn_mark> b;
    Random r(7);
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    for (int i = 0; i < 20000 * cases; i++) {
        std::vector<u16> header{(u16)(0x4500 | r.below(256)), 0x4000, (u16)r.next(), (u16)r.next()};
        bool is_v6 = r.below(2);
        u32 ecn = is_v6 ? header[0] >> 4 & 3 : header[0] & 3;
        b.block.queue_bytes = r.any(20);
        b.block.threshold_bytes = r.chance(10) ? 0 : r.any(20);
        b.block.is_ip = r.chance(90);
        b.block.is_v6 = is_v6;
        b.block.first_word = header[0];
        b.block.checksum = sum(header);
        b.tick();
        check(b.block.marks,
              b.block.is_ip && b.block.threshold_bytes &&
                  b.block.queue_bytes >= b.block.threshold_bytes && ecn != 0 && ecn != 3,
              "marks", "ecn_mark");
        u16 marked = header[0] | (is_v6 ? 0x30 : 3);
        check(b.block.marked_word, marked, "the word", "ecn_mark");
        header[0] = marked;
        if (!is_v6)
            check(b.block.marked_checksum, sum(header), "the checksum", "ecn_mark");
    }
    return finish("ecn_mark", b.clocks);
}
