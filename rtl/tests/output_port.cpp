// SPDX-License-Identifier: Apache-2.0
// An output alone: four inputs with frames of any size, a sink that waits, a scheme that drops.
// Each frame leaves once, unchanged, in the order of the grants (with HCF: in that of its flow), or
// is reported as dropped or lost; none is lost while there is room, and no more are kept than the
// buffer holds. All are granted, also while the queue has to empty and when HCF's periods are short.
#include "Voutput_port.h"
#include "frames.h"

#include <deque>

constexpr u32 INPUTS = 4, BUFFER = 65536, WORDS = BUFFER / WORD_BYTES, FRAME_BITS = 181;
constexpr u32 GRANT_TO_WORDS = 5; // clocks, at least
constexpr u32 FREED = 6;          // clocks from a frame's last word to its room, at most

struct Packet {
    Frame bytes;
    u32 input, flow;
    u32 words() const { return (bytes.size() + WORD_BYTES - 1) / WORD_BYTES; }
};

struct Input {
    std::deque<Packet> sending; // granted, and when they begin
    std::deque<uint64_t> begins;
    Packet next;
    bool requests = false;
    size_t at = 0;
};

struct Bench : Clocked<Voutput_port> {
    Random r{16};
    Input inputs[INPUTS];
    std::deque<std::pair<uint64_t, Packet>> undecided; // with the clock of the answer
    std::deque<Packet> expected[INPUTS * 8];           // by what keeps its order
    std::deque<std::pair<uint64_t, Packet>> freed;
    std::deque<bool> drops = std::deque<bool>(2); // of the two clocks before
    Frame leaving;
    // Bytes in the buffer; bytes and words with those that have just left.
    u64 held = 0, held_late = 0, words_late[INPUTS] = {};
    u64 left = 0, left_bytes = 0, departed = 0, departed_bytes = 0, dropped = 0, lost = 0, joined = 0;
    bool is_hcf = false, sends = false;
    bool may_refuse = false; // it prepares
    u64 grants = 0;
    u32 idle = 0, busy = 0, longest = 1514;

    std::deque<Packet> &line_of(const Packet &f) {
        return expected[is_hcf ? f.input * 8 + f.flow : 0];
    }
    void put_frame(u32 input, const Packet &f) {
        auto put = [&](u32 at, u32 bits, u64 value) {
            for (u32 i = 0; i < bits; i++) {
                u32 place = input * FRAME_BITS + at + i, mask = 1u << place % 32;
                u32 &word = block.frames[place / 32];
                word = value >> i & 1 ? word | mask : word & ~mask;
            }
        };
        put(165, 16, f.bytes.size()), put(164, 1, 1), put(156, 8, 0x10), put(140, 16, 1);
        put(124, 16, f.flow), put(108, 16, 80), put(107, 1, 1), put(32, 32, f.input), put(0, 32, 9);
    }
    void offer() {
        u32 request = 0, valid = 0, last = 0;
        for (u32 i = 0; i < INPUTS; i++) {
            Input &in = inputs[i];
            // The next frame waits behind one that is on its way.
            if (sends && !in.requests && in.sending.size() < 2 && !r.chance(idle)) {
                in.next = {Frame(32 + r.below(longest - 31)), i, (u32)r.below(8)};
                for (u8 &byte : in.next.bytes)
                    byte = r.next();
                put_frame(i, in.next);
                in.requests = true;
            }
            request |= in.requests << i;
            if (in.sending.empty() || in.begins.front() > clocks)
                continue;
            const Frame &f = in.sending.front().bytes;
            u32 count = std::min<size_t>(WORD_BYTES, f.size() - in.at);
            u64 keep = count == 64 ? ~0ull : (1ull << count) - 1;
            memcpy((char *)&block.s_tdata + i * WORD_BYTES, &f[in.at], count);
            memcpy((char *)&block.s_tkeep + i * WORD_BYTES / 8, &keep, WORD_BYTES / 8);
            valid |= 1 << i;
            in.at += count;
            if (in.at < f.size())
                continue;
            last |= 1 << i;
            in.at = 0;
            in.sending.pop_front(), in.begins.pop_front();
        }
        block.request = request, block.s_tvalid = valid, block.s_tlast = last;
        block.drops = r.chance(10);
        block.m_tready = !r.chance(busy);
    }
    void step() {
        offer();
        block.eval();
        if (block.departed) {
            u32 size = block.departure >> 25 & 0xffff;
            departed++, departed_bytes += size;
            held -= size;
        }
        joined += __builtin_popcount(block.joined);
        decide();
        take();
        drops.push_back(block.drops), drops.pop_front();
        tick();
    }
    void decide() {
        if (!undecided.empty() && undecided.front().first == clocks) {
            const Packet f = undecided.front().second;
            u32 size = f.bytes.size();
            check(block.dropped && block.lost, 0, "dropped and lost", "the answer");
            if (block.dropped)
                check(drops.front() && !is_hcf, 1, "dropped by the scheme", "the answer");
            if (block.lost && !is_hcf && !may_refuse)
                check(held_late + size > BUFFER || words_late[f.input] + f.words() > WORDS, 1,
                      "lost for lack of room", "the answer");
            dropped += block.dropped, lost += block.lost;
            if (!block.dropped && !block.lost) {
                check(!is_hcf && drops.front(), 0, "kept though the scheme drops it", "the answer");
                held += size, held_late += size, words_late[f.input] += f.words();
                check(held <= BUFFER, 1, "kept no more than the buffer holds", "the answer");
                line_of(f).push_back(f);
            }
            undecided.pop_front();
        } else {
            check(block.dropped || block.lost, 0, "an answer that none expects", "the answer");
        }
        for (u32 i = 0; i < INPUTS; i++) {
            if (!(block.granted >> i & 1))
                continue;
            Input &in = inputs[i];
            check(in.requests, 1, "granted on request", "a grant");
            grants++;
            undecided.push_back({clocks + (is_hcf ? 3 : 4), in.next});
            in.sending.push_back(in.next);
            in.begins.push_back(clocks + GRANT_TO_WORDS + r.below(3));
            in.requests = false;
        }
    }
    void take() {
        while (!freed.empty() && freed.front().first <= clocks) {
            held_late -= freed.front().second.bytes.size();
            words_late[freed.front().second.input] -= freed.front().second.words();
            freed.pop_front();
        }
        if (!block.m_tvalid || !block.m_tready)
            return;
        for (u32 k = 0; k < WORD_BYTES && (u64)block.m_tkeep >> k & 1; k++)
            leaving.push_back(((const u8 *)&block.m_tdata)[k]);
        if (!block.m_tlast)
            return;
        left++, left_bytes += leaving.size();
        for (auto &line : expected)
            if (!line.empty() && line.front().bytes == leaving) {
                freed.push_back({clocks + FREED, line.front()});
                line.pop_front();
                leaving.clear();
                return;
            }
        check(0, 1, "the next of its order", "a frame that leaves");
    }
    void run_empty() {
        auto is_done = [&] {
            for (const Input &in : inputs)
                if (in.requests || !in.sending.empty())
                    return false;
            return undecided.empty() && left == departed && !block.queue_bytes;
        };
        sends = false;
        for (int i = 0; i < 500000 && !is_done(); i++)
            step();
        for (int i = 0; i < 10; i++)
            step();
        check(is_done(), 1, "all done", "the end");
        check(held + held_late + leaving.size(), 0, "bytes inside", "the end");
        check(joined, departed, "frames that joined", "the end");
        check(departed_bytes, left_bytes, "bytes departed", "the end");
    }
    void prepare(bool hcf) {
        block.wants_hcf = hcf;
        block.prepare = 1;
        step();
        block.prepare = 0;
        is_hcf = hcf;
        for (int i = 0; i < 400; i++)
            step();
    }
    // Prepared while the sink waits: frames are granted and lost, and the queue stays as it is.
    void prepare_stopped() {
        busy = 100;
        for (int i = 0; i < 100; i++)
            step();
        may_refuse = true;
        block.prepare = 1;
        step();
        block.prepare = 0;
        for (int i = 0; i < 10; i++)
            step();
        u32 queue = block.queue_bytes;
        u64 before = grants;
        for (int i = 0; i < 4000; i++)
            step();
        check(grants > before, 1, "frames are granted", "a sink that waits");
        check(block.queue_bytes, queue, "the queue", "a sink that waits");
        busy = 0;
        run_empty();
        may_refuse = false;
    }
};

// A tick in every clock.
static void test_short_periods(Bench &b) {
    for (u32 period : {HCF_PERIOD_DYNAMIC, HCF_PERIOD_FIXED, HCF_PERIOD_ORDERED}) {
        hcf_params p = hcf_default_params(BUFFER);
        p.period = period;
        set_hcf(b.block.p, p);
        b.prepare(true);
        b.idle = b.busy = 0, b.longest = 100;
        b.sends = true;
        b.block.tick = 1;
        u64 before = b.left;
        for (int i = 0; i < 20000; i++)
            b.step();
        check(b.left - before > 100, 1, "frames leave", "period " + std::to_string(period));
        b.run_empty();
        b.block.tick = 0;
    }
}

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    set_hcf(b.block.p, hcf_default_params(BUFFER));
    b.block.seed = 1;
    b.reset();
    for (int c = 0; c < cases; c++) {
        b.prepare(c % 3 == 2);
        b.idle = b.r.pick<u32>({0, 50, 99});
        b.busy = b.r.pick<u32>({0, 30, 70});
        b.longest = b.r.pick<u32>({40, 100, 1514, 9018});
        b.sends = true;
        for (int i = 0; i < 20000; i++) {
            b.block.tick = b.is_hcf && b.r.below(500) == 0;
            b.step();
        }
        b.block.tick = 0;
        if (!b.is_hcf)
            b.prepare_stopped();
        b.run_empty();
    }
    test_short_periods(b);
    check(b.lost && b.dropped && b.left, 1, "all that may happen", "the end");
    printf("%llu frames left, %llu dropped, %llu lost; ", b.left, b.dropped, b.lost);
    return finish(("output_port-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
