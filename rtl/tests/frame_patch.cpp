// SPDX-License-Identifier: Apache-2.0
// Patches against the same bytes written into the frame: any places, also behind its end, words
// without a pause or with idle clocks and back-pressure, resets; with neither, one word per clock.
#include "Vframe_patch.h"
#include "frames.h"

#include <deque>

constexpr u32 PATCHES = 7, PATCH_BITS = 29;

struct Bench : Clocked<Vframe_patch> {
    std::deque<Frame> expected;
    Frame leaving;
    uint64_t frames = 0, bubbles = 0;
    bool moves = false; // the word offered is taken in this clock

    void put_patch(u32 number, bool valid, u32 at, u16 value, u32 enable) {
        u64 bits = (u64)valid << 28 | (u64)at << 18 | (u64)value << 2 | enable;
        for (u32 i = 0; i < PATCH_BITS; i++) {
            u32 place = number * PATCH_BITS + i;
            u32 mask = 1u << place % 32;
            u32 &word = block.patches[place / 32];
            word = bits >> i & 1 ? word | mask : word & ~mask;
        }
    }
    void step() {
        block.eval();
        moves = block.s_tvalid && block.s_tready;
        if (block.m_tvalid && block.m_tready) {
            uint8_t bytes[WORD_BYTES];
            u32 count = 0;
            while (count < WORD_BYTES && (uint64_t)block.m_tkeep >> count & 1)
                count++;
            get_bytes(block.m_tdata, bytes, count);
            leaving.insert(leaving.end(), bytes, bytes + count);
            if (block.m_tlast) {
                check(expected.empty(), 0, "no frame expected", "frame_patch");
                check(leaving == expected.front(), 1, "as it should leave",
                      "frame " + std::to_string(frames++));
                expected.pop_front();
                leaving.clear();
            }
        } else if (!leaving.empty() && block.m_tready) {
            bubbles++;
        }
        tick();
    }
};

int main(int argc, char **argv) {
    Bench b;
    Random r(15);
    int cases = argc > 1 ? atoi(argv[1]) : 20;
    bool was_smooth = false;
    auto &d = b.block;

    b.reset();
    for (int i = 0; i < 200 * cases; i++) {
        bool is_smooth = i / 20 % 3 == 0; // frames back to back, and the sink always ready
        u32 idle = is_smooth ? 0 : r.below(60), busy = is_smooth ? 0 : r.below(60);
        Frame f(1 + r.below(r.pick<u32>({8, 100, 300, 4000})));
        for (u8 &byte : f)
            byte = r.next();
        Frame due = f;
        std::vector<u32> places; // each at most once
        for (u32 number = 0; number < PATCHES; number++) {
            u32 at = r.below(r.pick<u32>({8, 64, 1024})), enable = r.below(4);
            u16 value = r.next();
            bool is_new = std::find(places.begin(), places.end(), at) == places.end();
            bool valid = r.chance(70) && is_new;
            b.put_patch(number, valid, at, value, enable);
            if (!valid)
                continue;
            places.push_back(at);
            if (enable & 2 && 2 * at < due.size())
                due[2 * at] = value >> 8;
            if (enable & 1 && 2 * at + 1 < due.size())
                due[2 * at + 1] = value;
        }
        b.expected.push_back(due);
        bool is_cut = r.chance(1);
        for (u32 at = 0; at < f.size();) {
            if (is_cut && at > f.size() / 2)
                break;
            u32 count = std::min<u32>(WORD_BYTES, f.size() - at);
            put_bytes(d.s_tdata, &f[at], count);
            d.s_tkeep = count == 64 ? ~0ull : (1ull << count) - 1;
            d.s_tlast = at + count == f.size();
            if (b.moves || !d.s_tvalid) // a word once offered stays
                d.s_tvalid = !r.chance(idle);
            d.m_tready = !r.chance(busy);
            b.step();
            at += b.moves ? count : 0;
        }
        if (is_cut || r.chance(5)) {
            d.s_tvalid = 0;
            d.m_tready = 1;
            for (int k = 0; k < 3 && !is_cut; k++)
                b.step();
            b.reset();
            b.expected.clear();
            b.leaving.clear();
        }
        if (is_smooth && was_smooth)
            check(b.bubbles, 0, "clocks without a word within a frame", "line rate");
        b.bubbles = 0;
        was_smooth = is_smooth;
    }
    printf("%llu frames; ", (unsigned long long)b.frames);
    return finish(("frame_patch-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
