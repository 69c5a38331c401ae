// SPDX-License-Identifier: Apache-2.0
// The parser against a plain one, on random frames back to back and with idle clocks, and resets.
#include "Vparser.h"
#include "frames.h"

#include <deque>

// A field of header_t by its first bit from the right; Verilator has the struct as words.
static uint64_t field(const VlWide<12> &header, u32 low, u32 bits) {
    uint64_t value = 0;
    for (u32 i = 0; i < bits; i++)
        value |= (uint64_t)(header[(low + i) / 32] >> (low + i) % 32 & 1) << i;
    return value;
}

static void compare(const VlWide<12> &header, const Frame &f, const std::string &where) {
    Parsed p = parse(f);
    u32 low = 0;
    auto next = [&](u32 bits) { // from the last member of the struct to the first
        low += bits;
        return field(header, low - bits, bits);
    };
    bool authenticated = next(1);
    u32 scale_at = next(7), scale = next(8), mss = next(16), payload = next(16);
    u32 checksum = next(16), window = next(16), offset_flags = next(16), tcp_at = next(10);
    next(16 + 16 + 1 + 8); // ports, protocol
    next(32 + 32);
    u32 ip_checksum = next(16), ip_word = next(16), ip_at = next(10);
    bool is_v6 = next(1), is_ip = next(1);
    u32 reason = next(4);
    next(1);
    check(next(16), f.size(), "bytes", where);
    check(reason, p.reason, "the reason", where);
    check(is_ip, p.is_ip, "is_ip", where);
    if (p.is_ip) {
        check(is_v6, p.is_v6, "is_v6", where);
        check(ip_at * 2, p.ip, "ip_at", where);
        check(ip_word, word(f, p.ip), "ip_word", where);
        if (!is_v6)
            check(ip_checksum, word(f, p.ip + 10), "ip_checksum", where);
    }
    if (p.reason != 15)
        return;
    check(tcp_at * 2, p.tcp, "tcp_at", where);
    check(offset_flags, p.offset_flags, "offset_flags", where);
    check(window, p.window, "window", where);
    check(checksum, p.checksum, "checksum", where);
    check(payload, p.payload, "payload", where);
    check(mss, p.mss, "mss", where);
    check(scale, p.scale, "scale", where);
    if (p.scale != 0xfe)
        check(scale_at, p.scale_at, "scale_at", where);
    check(authenticated, p.is_authenticated, "is_authenticated", where);
}

int main(int argc, char **argv) {
    Clocked<Vparser> b;
    Random r(10);
    int cases = argc > 1 ? atoi(argv[1]) : 20, reasons[16] = {};

    b.reset();
    for (int i = 0; i < 1500 * cases; i++) {
        Frame f = any_frame(r, 120);
        bool is_idle = r.chance(50), is_cut = r.chance(1);
        u32 stop = is_cut ? r.below(f.size()) : f.size();
        for (u32 at = 0; at < stop; at += WORD_BYTES) {
            u32 count = std::min<u32>(WORD_BYTES, f.size() - at);
            while (is_idle && r.chance(30)) {
                b.block.transfer = 0;
                b.tick();
                check(b.block.header_valid, 0, "a header", "idle");
            }
            put_bytes(b.block.tdata, &f[at], count);
            b.block.tkeep = count == 64 ? ~0ull : (1ull << count) - 1;
            b.block.tlast = at + count == f.size();
            b.block.transfer = 1;
            b.tick();
            check(b.block.header_valid, b.block.tlast, "a header", "frame");
        }
        b.block.transfer = 0;
        if (stop < f.size()) {
            b.reset();
            continue;
        }
        if (b.block.header_valid) {
            reasons[parse(f).reason]++;
            compare(b.block.header, f, "frame " + std::to_string(i));
        }
    }
    for (u32 reason : {PASS_NOT_IP, PASS_NOT_TCP, PASS_FRAGMENT, PASS_TRUNCATED, PASS_MALFORMED,
                       PASS_TOO_DEEP})
        check(reasons[reason] > 0, 1, "every reason occurs", "frames");
    return finish(("parser-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
