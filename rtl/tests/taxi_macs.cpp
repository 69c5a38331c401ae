// SPDX-License-Identifier: Apache-2.0
// The switch behind MACs as taxi's: receivers that mark bad frames at the end, senders that pause
// between words but must not wait for one within a frame, completions in any clock.
#include "Vtaxi_macs.h"
#include "streams.h"

constexpr int PORTS = 4;

struct Bench : Clocked<Vtaxi_macs> {
    Random r{16};
    Sender senders[PORTS];
    Receiver receivers[PORTS];
    std::deque<bool> is_bad[PORTS]; // by frame
    std::vector<Frame> expected[PORTS];

    void step() {
        u32 valid = 0, last = 0, user = 0;
        Word words[PORTS];
        for (int i = 0; i < PORTS; i++) {
            Word &w = words[i] = r.chance(10) ? Word() : senders[i].offer();
            put_lane(block.rx_tdata, i, w.bytes, WORD_BYTES);
            put_lane(block.rx_tkeep, i, &w.keep, WORD_BYTES / 8);
            valid |= w.valid << i;
            last |= w.last << i;
            // In the middle of a frame the mark means nothing.
            user |= (w.last ? is_bad[i].front() : r.chance(10)) << i;
        }
        block.rx_tvalid = valid, block.rx_tlast = last, block.rx_tuser = user;
        block.tx_tready = r.below(16) | r.below(16);
        block.tx_cpl_tvalid = r.below(16);
        block.eval();
        check(block.rx_tready, 15, "rx_tready", "receivers");
        check(block.tx_cpl_tready, 15, "tx_cpl_tready", "completions");
        check(block.tx_tuser, 0, "tx_tuser", "senders");
        for (int i = 0; i < PORTS; i++) {
            bool is_valid = block.tx_tvalid >> i & 1;
            if (receivers[i].is_inside())
                check(is_valid, 1, "a word for the MAC", "within a frame");
            if (is_valid && block.tx_tready >> i & 1)
                receivers[i].take(lane_of(block.tx_tdata, i, WORD_BYTES), keep_of(block.tx_tkeep, i),
                                  block.tx_tlast >> i & 1);
            if (words[i].valid) {
                if (words[i].last)
                    is_bad[i].pop_front();
                senders[i].moved();
            }
        }
        check(block.tx_tstrb, block.tx_tkeep, "tx_tstrb", "senders");
        tick();
    }
    void send(int from, int to, const Frame &f, bool bad) {
        senders[from].waiting.push_back(f);
        is_bad[from].push_back(bad);
        for (int i = 0; i < PORTS && !bad; i++)
            if (i != from && (i == to || to == 255))
                expected[i].push_back(f);
    }
    // As many frames as sent leave each port, each as it was; of one input in order.
    void finish_all() {
        for (int i = 0; i < 6000; i++)
            step();
        for (int i = 0; i < PORTS; i++) {
            check(receivers[i].frames.size(), expected[i].size(), "frames", "output");
            for (int from = 0; from < PORTS; from++) {
                auto of = [&](const std::vector<Frame> &all) {
                    std::vector<Frame> some;
                    for (const Frame &f : all)
                        if (f[11] == from)
                            some.push_back(f);
                    return some;
                };
                check(of(receivers[i].frames) == of(expected[i]), 1, "the frames", "output");
            }
            receivers[i].frames.clear(), expected[i].clear();
        }
    }
};

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;
    b.reset();
    for (int i = 0; i < 300; i++)
        b.step();
    for (int i = 0; i < PORTS; i++) {
        Frame f = segment(i, 255, 60, 0x10, 1, i);
        f[0] = 255;
        b.send(i, 255, f, false);
    }
    b.finish_all();
    for (int c = 0; c < cases; c++) {
        for (int i = 0; i < 40; i++) {
            int from = b.r.below(PORTS), to = (from + 1 + b.r.below(PORTS - 1)) % PORTS;
            u32 size = b.r.pick<u32>({60, 61, 64, 590, 1514});
            b.send(from, to, segment(from, to, size, 0x10, 1, i), b.r.chance(20));
        }
        b.finish_all();
    }
    set_register(b, 3, "port_scheme", 2);
    check(get_register(b, 3, "port_scheme"), 2, "the register", "AXI4-Lite");
    return finish("taxi_macs", b.clocks);
}
