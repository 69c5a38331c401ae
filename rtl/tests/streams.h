// SPDX-License-Identifier: Apache-2.0
// Senders and receivers of frames on AXI4-Stream, and a master of AXI4-Lite, for the adapters.
#pragma once

#include "frames.h"

#include <deque>

// A frame of which the switch knows the addresses: bytes 5 and 11; TCP, 60 bytes at least.
inline Frame segment(u32 source, u32 destination, u32 size, u8 flags, u16 window, u32 number) {
    Frame f(size);
    f[5] = destination, f[11] = source;
    set_word(f, 12, 0x0800);
    f[14] = 0x45, f[22] = 64, f[23] = 6;
    set_word(f, 16, 40);
    set_word(f, 34, 1000), set_word(f, 36, 80);
    set_word(f, 46, 0x5000 | flags), set_word(f, 48, window);
    set_word(f, 56, number >> 16), set_word(f, 58, number);
    set_word(f, 24, ~sum_words(f, 14, 34));
    return f;
}

struct Word {
    uint8_t bytes[WORD_BYTES] = {};
    uint64_t keep = 0;
    bool valid = false, first = false, last = false;
};

class Sender {
  public:
    std::deque<Frame> waiting;
    // The next word; `moved` once it was taken.
    Word offer() const {
        Word w;
        if (waiting.empty())
            return w;
        const Frame &f = waiting.front();
        u32 count = std::min<size_t>(WORD_BYTES, f.size() - at);
        memcpy(w.bytes, &f[at], count);
        w.keep = count == 64 ? ~0ull : (1ull << count) - 1;
        w.valid = true;
        w.first = at == 0;
        w.last = at + count == f.size();
        return w;
    }
    void moved() {
        at += WORD_BYTES;
        if (at >= waiting.front().size()) {
            waiting.pop_front();
            at = 0;
        }
    }

  private:
    size_t at = 0;
};

class Receiver {
  public:
    std::vector<Frame> frames;
    bool is_inside() const { return !now.empty(); }
    void take(const void *bytes, uint64_t keep, bool last) {
        for (u32 i = 0; i < WORD_BYTES && keep >> i & 1; i++)
            now.push_back(((const uint8_t *)bytes)[i]);
        if (last) {
            frames.push_back(now);
            now.clear();
        }
    }

  private:
    Frame now;
};

template <class T> void put_lane(T &signal, int lane, const void *bytes, u32 size) {
    memcpy((char *)&signal + lane * size, bytes, size);
}
template <class T> const void *lane_of(const T &signal, int lane, u32 size) {
    return (const char *)&signal + lane * size;
}
template <class T> uint64_t keep_of(const T &signal, int lane) {
    uint64_t keep = 0;
    memcpy(&keep, lane_of(signal, lane, WORD_BYTES / 8), WORD_BYTES / 8);
    return keep;
}

inline u32 register_at(int port, const std::string &name) {
    for (u32 i = 0; i < sizeof(registers) / sizeof(*registers); i++)
        if (name == registers[i].name)
            return port * 0x400 + 4 * i;
    check(0, 1, "a register of this name", name);
    return 0;
}

// `bench.step()` is a clock.
template <class Bench> void set_register(Bench &bench, int port, const char *name, u32 value) {
    auto &b = bench.block;
    b.s_axil_awaddr = register_at(port, name), b.s_axil_wdata = value, b.s_axil_wstrb = 15;
    b.s_axil_awvalid = b.s_axil_wvalid = b.s_axil_bready = 1;
    bench.step();
    b.s_axil_awvalid = b.s_axil_wvalid = 0;
    while (!b.s_axil_bvalid)
        bench.step();
    check(b.s_axil_bresp, 0, "accepted", name);
    bench.step();
}

template <class Bench> u32 get_register(Bench &bench, int port, const char *name) {
    auto &b = bench.block;
    b.s_axil_araddr = register_at(port, name);
    b.s_axil_arvalid = b.s_axil_rready = 1;
    bench.step();
    b.s_axil_arvalid = 0;
    while (!b.s_axil_rvalid)
        bench.step();
    u32 value = b.s_axil_rdata;
    bench.step();
    return value;
}
