// SPDX-License-Identifier: Apache-2.0
// The parser against a plain one, on random frames back to back and with idle clocks, and resets.
#include "Vparser.h"
#include "frames.h"

#include <deque>

// A field of header_t by its first bit from the right; Verilator has the struct as words.
template <class Words> static uint64_t field(const Words &header, u32 low, u32 bits) {
    uint64_t value = 0;
    for (u32 i = 0; i < bits; i++)
        value |= (uint64_t)(header[(low + i) / 32] >> (low + i) % 32 & 1) << i;
    return value;
}

// An address as 32 bits: the exclusive or of its words.
static u32 folded(const Frame &f, u32 at, u32 bytes) {
    u32 all = 0;
    for (u32 i = 0; i < bytes; i += 4)
        all ^= word(f, at + i) << 16 | word(f, at + i + 2);
    return all;
}

// Reads fields from the last member of a struct to the first.
template <class Words> struct Fields {
    const Words &words;
    u32 low = 0;
    uint64_t next(u32 bits) {
        low += bits;
        return field(words, low - bits, bits);
    }
};

static void compare_addresses(const VlWide<3> &words, const Frame &f, const std::string &where) {
    Fields<VlWide<3>> fields{words};
    for (int at : {10, 8, 6, 4, 2, 0}) {
        u32 actual = fields.next(16);
        if (f.size() >= 12)
            check(actual, word(f, at), "a MAC address", where);
    }
}

static void compare_ip(const VlWide<4> &words, const Frame &f, const std::string &where) {
    Parsed p = parse(f);
    Fields<VlWide<4>> fields{words};
    u32 destination = fields.next(32), source = fields.next(32);
    u32 ip_checksum = fields.next(16), ip_word = fields.next(16), ip_at = fields.next(10);
    bool is_v6 = fields.next(1), is_ip = fields.next(1);
    check(is_ip, p.is_ip, "is_ip", where);
    if (!p.is_ip)
        return;
    check(is_v6, p.is_v6, "is_v6", where);
    check(ip_at * 2, p.ip, "ip_at", where);
    check(ip_word, word(f, p.ip), "ip_word", where);
    if (!is_v6)
        check(ip_checksum, word(f, p.ip + 10), "ip_checksum", where);
    u32 from = p.ip + (is_v6 ? 8 : 12), bytes = is_v6 ? 16 : 4;
    check(source, folded(f, from, bytes), "source", where);
    check(destination, folded(f, from + bytes, bytes), "destination", where);
}

static void compare_header(const VlWide<5> &header, const Frame &f, const std::string &where) {
    Parsed p = parse(f);
    Fields<VlWide<5>> fields{header};
    bool authenticated = fields.next(1);
    u32 scale_at = fields.next(7), scale = fields.next(8);
    bool has_scale = fields.next(1);
    u32 payload = fields.next(16), checksum = fields.next(16), window = fields.next(16);
    u32 offset_flags = fields.next(16), tcp_at = fields.next(10);
    u32 to_port = fields.next(16), from_port = fields.next(16), reason = fields.next(4);
    check(fields.next(16), f.size(), "bytes", where);
    check(reason, p.reason, "the reason", where);
    if (p.reason != 15)
        return;
    check(tcp_at * 2, p.tcp, "tcp_at", where);
    check(from_port, word(f, p.tcp), "source port", where);
    check(to_port, word(f, p.tcp + 2), "destination port", where);
    check(offset_flags, p.offset_flags, "offset_flags", where);
    check(window, p.window, "window", where);
    check(checksum, p.checksum, "checksum", where);
    check(payload, p.payload, "payload", where);
    check(has_scale, p.has_scale, "has_scale", where);
    if (p.has_scale)
        check(scale, p.scale, "scale", where), check(scale_at, p.scale_at, "scale_at", where);
    check(authenticated, p.is_authenticated, "is_authenticated", where);
}

// Clocks from a frame's last word to its addresses, its IP header and the rest.
constexpr u32 ADDRESSES = 2, IP = 7, LATENCY = 38;

struct Bench : Clocked<Vparser> {
    struct Due {
        uint64_t clock;
        Frame frame;
    };
    std::deque<Due> due;
    int reasons[16] = {};
    uint64_t headers = 0;

    void step() {
        tick();
        for (const Due &d : due) {
            std::string where = "clock " + std::to_string(clocks);
            if (d.clock + ADDRESSES == clocks + LATENCY)
                compare_addresses(block.addresses, d.frame, where);
            if (d.clock + IP == clocks + LATENCY)
                compare_ip(block.ip, d.frame, where);
        }
        bool is_due = !due.empty() && due.front().clock == clocks;
        check(block.header_valid, is_due, "a header", "clock " + std::to_string(clocks));
        if (!is_due)
            return;
        const Frame &f = due.front().frame;
        reasons[parse(f).reason]++;
        compare_header(block.header, f, "frame " + std::to_string(headers++));
        due.pop_front();
    }
    // Its words up to `stop`, with idle clocks between them in `idle` of a hundred.
    void send(const Frame &f, u32 stop, Random &r, u32 idle) {
        for (u32 at = 0; at < std::min<size_t>(stop, f.size()); at += WORD_BYTES) {
            u32 count = std::min<u32>(WORD_BYTES, f.size() - at);
            block.transfer = 0;
            while (r.chance(idle))
                step();
            put_bytes(block.tdata, &f[at], count);
            block.tkeep = count == 64 ? ~0ull : (1ull << count) - 1;
            block.tlast = at + count == f.size();
            block.transfer = 1;
            if (block.tlast)
                due.push_back({clocks + LATENCY, f});
            step();
        }
        block.transfer = 0;
    }
    void restart() {
        due.clear();
        block.rst = 1;
        step();
        block.rst = 0;
    }
};

int main(int argc, char **argv) {
    Bench b;
    Random r(10);
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    b.reset();
    for (int i = 0; i < 1500 * cases; i++) {
        Frame f = any_frame(r, 120);
        bool is_cut = r.chance(1);
        b.send(f, is_cut ? r.below(f.size()) : f.size(), r, i / 50 % 2 * 30);
        if (is_cut)
            b.restart();
    }
    // A reset after each clock of a frame, with others before and behind it.
    for (int i = 0; i < cases; i++) {
        Frame f = any_frame(r, 300);
        for (u32 clock = 0; clock <= LATENCY; clock++) {
            b.send(any_frame(r, 20), 2000, r, 0);
            b.send(f, clock * WORD_BYTES, r, 0);
            for (u32 k = f.size() / WORD_BYTES; k < clock; k++)
                b.step();
            b.restart();
            b.send(any_frame(r, 20), 2000, r, 0);
        }
    }
    // Runts of every length, one after the other.
    for (int i = 0; i < cases; i++)
        for (u32 size = 1; size < 64; size++) {
            Frame f = any_frame(r, 60);
            f.resize(size);
            b.send(f, size, r, 0);
        }
    for (u32 i = 0; i <= LATENCY; i++)
        b.step();
    check(b.due.size(), 0, "headers missing", "the end");
    for (u32 reason : {PASS_NOT_IP, PASS_NOT_TCP, PASS_FRAGMENT, PASS_TRUNCATED, PASS_MALFORMED,
                       PASS_TOO_DEEP})
        check(b.reasons[reason] > 0, 1, "every reason occurs", "frames");
    printf("%llu frames; ", (unsigned long long)b.headers);
    return finish(("parser-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
