// SPDX-License-Identifier: Apache-2.0
// A port's input with the windows of core/fairq.h: each frame comes out once, in order, changed as
// the rules of bpf/rewrite.h and bpf/scale.h give, under idle clocks, back-pressure and resets; with
// neither, one word passes per clock. Checksums that were right stay right.
#include "Vingress.h"
#include "frames.h"

#include <algorithm>
#include <deque>

constexpr int ANSWER = 14;

// The frame as it should leave.
static Frame rewritten(Frame f, const window_params &c, const fairq_state &s, const fairq_params &p) {
    Parsed found = parse(f);
    u32 flags = found.offset_flags & 0xff, at = found.tcp;
    bool is_syn = flags & TCP_FLAG_SYN, is_answer = flags & TCP_FLAG_ACK;
    u16 checksum = found.checksum, window = found.window;
    u32 scale = 0;

    if (found.reason != 15 || found.is_authenticated || flags & TCP_FLAG_RST)
        return f;
    if (is_syn && found.has_scale &&
        window_syn_scale(&c, std::min<u32>(found.scale, TCP_MAX_SCALE), is_answer) == TCP_SCALE_UNKNOWN)
        for (u32 i = found.scale_at - 2; i <= found.scale_at; i++) {
            checksum = tcp_checksum_update_byte(checksum, i, f[at + i], 1);
            f[at + i] = 1;
        }
    if (!is_syn && c.wscale_source == WSCALE_RESERVED_BITS && c.clears_bits)
        set_word(f, at + 12, tcp_reserved_clear(found.offset_flags));
    if (is_answer) {
        bool carries = c.wscale_source == WSCALE_WINDOW_BITS && !is_syn;
        if (!is_syn) {
            if (c.wscale_source == WSCALE_RESERVED_BITS)
                scale = tcp_reserved_scale(found.offset_flags);
            if (carries) {
                scale = tcp_window12_scale(window);
                window = tcp_window12_window(window);
            }
            if (c.wscale_source == WSCALE_UNIFIED)
                scale = c.network_wscale;
        }
        tcp_window out = fairq_on_ack(&s, &p, window, scale, 0,
                                      is_syn ? TCP_ACK_SYN : TCP_ACK_LATER, 0);
        if (out.changed) {
            u16 field = carries ? tcp_window12_put(out.window, scale) : out.window;
            checksum = tcp_checksum_update(checksum, found.window, field);
            set_word(f, at + 14, field);
        }
    }
    set_word(f, at + 16, checksum);
    return f;
}

// A SYN with a window scale, sound but for the scale.
static Frame syn_with_scale(u8 scale) {
    Frame f(60);
    set_word(f, 12, 0x0800);
    set_word(f, 14, 0x4500), set_word(f, 16, 44), f[22] = 64, f[23] = 6;
    set_word(f, 46, 0x6000 | TCP_FLAG_SYN), set_word(f, 48, 60000);
    set_word(f, 54, 0x0303), set_word(f, 56, scale << 8 | 1);
    return f;
}

struct Bench : Clocked<Vingress> {
    fairq_params p = fairq_default_params(100000);
    fairq_state s{};
    window_params config = window_default_params();
    std::deque<Frame> expected;
    Frame leaving;
    // The scheme: what is asked now is answered 14 clocks later.
    std::deque<tcp_window> answers = std::deque<tcp_window>(ANSWER);
    uint64_t frames = 0, rewrites = 0, counted = 0, bubbles = 0;

    void step() {
        block.eval();
        bool takes = block.m_tvalid && block.m_tready;
        if (takes) {
            u32 count = 0;
            uint8_t bytes[WORD_BYTES];
            while (count < WORD_BYTES && (uint64_t)block.m_tkeep >> count & 1)
                count++;
            get_bytes(block.m_tdata, bytes, count);
            leaving.insert(leaving.end(), bytes, bytes + count);
            if (block.m_tlast)
                compare();
        } else if (!leaving.empty() && block.m_tready) {
            bubbles++;
        }
        answers.push_back(fairq_on_ack(&s, &p, block.window, block.scale, 0, block.kind, 0));
        block.lowered = answers.front().window;
        block.changed = answers.front().changed;
        block.floored = answers.front().floored;
        answers.pop_front();
        counted += block.rewritten;
        tick();
    }
    void compare() {
        std::string where = "frame " + std::to_string(frames++);
        check(expected.empty(), 0, "no frame expected", where);
        check(leaving.size(), expected.front().size(), "its length", where);
        for (size_t i = 0; i < leaving.size(); i++)
            if (leaving[i] != expected.front()[i])
                check(leaving[i], expected.front()[i], ("byte " + std::to_string(i)).c_str(), where);
        checks++;
        expected.pop_front();
        leaving.clear();
    }
    void restart() {
        block.s_tvalid = 0;
        reset();
        expected.clear();
        leaving.clear();
    }
};

int main(int argc, char **argv) {
    Bench b;
    Random r(11);
    int cases = argc > 1 ? atoi(argv[1]) : 20;
    auto &d = b.block;

    for (int c = 0; c < cases; c++) {
        b.config.wscale_source = r.pick<u32>({WSCALE_RESERVED_BITS, WSCALE_WINDOW_BITS,
                                              WSCALE_UNIFIED, WSCALE_STRIPPED});
        b.config.clears_bits = r.below(2);
        b.config.network_wscale = r.below(15);
        set_window(d.p, b.config);
        b.p = fairq_default_params(1 + r.any(24));
        fairq_init(&b.s, &b.p);
        fairq_on_flows(&b.s, r.any(8));
        b.restart();

        bool is_smooth = c % 3 == 0; // back to back, and the sink always ready
        u32 idle = is_smooth ? 0 : r.below(60), busy = is_smooth ? 0 : r.below(60);
        u32 max_payload = r.pick<u32>({2, 100, 1500, 8900});
        d.m_start = 1;
        for (int i = 0; i < 100; i++) {
            Frame f = any_frame(r, max_payload);
            if (b.config.wscale_source == WSCALE_STRIPPED && r.chance(25))
                f = syn_with_scale(r.pick<u8>({0, 14, 15, 253, 254, 255}));
            bool is_bad = r.chance(3);
            if (r.chance(1))
                f.resize(9019 + r.below(200)); // longer than allowed
            bool is_lost = is_bad || f.size() < 32 || f.size() > 9018;
            u32 stop = r.chance(1) && r.chance(20) ? r.below(f.size()) : f.size();
            for (u32 at = 0; at < stop;) {
                d.m_tready = !r.chance(busy);
                d.s_tvalid = !r.chance(idle) && b.expected.size() < 4; // room for each
                if (is_smooth)
                    d.s_tvalid = 1;
                if (d.s_tvalid) {
                    u32 count = std::min<u32>(WORD_BYTES, f.size() - at);
                    put_bytes(d.s_tdata, &f[at], count);
                    d.s_tkeep = count == 64 ? ~0ull : (1ull << count) - 1;
                    at += count;
                    d.s_tlast = at >= f.size();
                    d.s_tuser = d.s_tlast && is_bad;
                }
                if (d.s_tvalid && d.s_tlast && !is_lost) {
                    b.expected.push_back(rewritten(f, b.config, b.s, b.p));
                    b.rewrites += b.expected.back() != f;
                }
                b.step();
            }
            if (stop < f.size())
                b.restart();
        }
        d.s_tvalid = 0;
        for (int i = 0; i < 20000 && !b.expected.empty(); i++) {
            d.m_tready = !r.chance(busy);
            b.step();
        }
        check(b.expected.size(), 0, "frames left inside", "the end");
        if (is_smooth)
            check(b.bubbles, 0, "clocks without a word within a frame", "line rate");
        b.bubbles = 0;
    }
    check(b.rewrites > 0 && b.counted > 0, 1, "some are rewritten", "the end");
    printf("%llu frames, %llu changed; ", (unsigned long long)b.frames,
           (unsigned long long)b.rewrites);
    return finish(("ingress-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
