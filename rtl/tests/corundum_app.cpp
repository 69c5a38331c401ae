// SPDX-License-Identifier: Apache-2.0
// Between a MAC and a host as in Corundum's application block: frames pass both ways, bad ones do
// not, each frame of the host is completed once with its tag, and FairQ lowers the line's ACKs.
#include "Vcorundum_app.h"
#include "streams.h"

enum { LINE, HOST };

struct Bench : Clocked<Vcorundum_app> {
    Random r{17};
    Sender senders[2];
    Receiver to_host, to_line;
    std::deque<std::pair<bool, u16>> marks[2]; // of each frame: bad; the host's tag
    std::deque<u16> tags;                      // not completed yet
    std::vector<Frame> expected_host, expected_line;
    u32 number = 0;

    template <class T> static void set_user(T &signal, bool bad, u32 tag) {
        memset(&signal, 0, sizeof(signal));
        u32 word = tag << 1 | bad;
        memcpy(&signal, &word, 4);
    }
    void step() {
        Word line = r.chance(10) ? Word() : senders[LINE].offer();
        Word host = r.chance(10) ? Word() : senders[HOST].offer();
        put_bytes(block.s_axis_sync_rx_tdata, line.bytes, WORD_BYTES);
        put_bytes(block.s_axis_sync_tx_tdata, host.bytes, WORD_BYTES);
        block.s_axis_sync_rx_tkeep = line.keep, block.s_axis_sync_tx_tkeep = host.keep;
        block.s_axis_sync_rx_tvalid = line.valid, block.s_axis_sync_tx_tvalid = host.valid;
        block.s_axis_sync_rx_tlast = line.last, block.s_axis_sync_tx_tlast = host.last;
        set_user(block.s_axis_sync_rx_tuser, line.last && marks[LINE].front().first, r.next() & 0xffff);
        if (host.valid)
            set_user(block.s_axis_sync_tx_tuser, host.last && marks[HOST].front().first,
                     marks[HOST].front().second);
        block.m_axis_sync_rx_tready = !r.chance(10);
        block.m_axis_sync_tx_tready = !r.chance(10);
        block.m_axis_sync_tx_cpl_ready = r.chance(40);
        block.s_axis_sync_tx_cpl_valid = r.chance(20);
        block.s_axis_sync_tx_cpl_tag = r.next();
        block.eval();
        check(block.s_axis_sync_rx_tready, 1, "ready", "the line");
        check(block.s_axis_sync_tx_cpl_ready, 1, "ready", "the MAC's completions");
        if (block.m_axis_sync_rx_tvalid && block.m_axis_sync_rx_tready)
            to_host.take(&block.m_axis_sync_rx_tdata, block.m_axis_sync_rx_tkeep,
                         block.m_axis_sync_rx_tlast);
        if (to_line.is_inside())
            check(block.m_axis_sync_tx_tvalid, 1, "a word for the MAC", "within a frame");
        if (block.m_axis_sync_tx_tvalid && block.m_axis_sync_tx_tready)
            to_line.take(&block.m_axis_sync_tx_tdata, block.m_axis_sync_tx_tkeep,
                         block.m_axis_sync_tx_tlast);
        if (block.m_axis_sync_tx_cpl_valid && block.m_axis_sync_tx_cpl_ready) {
            check(tags.empty(), 0, "a completion without a frame", "completions");
            check(block.m_axis_sync_tx_cpl_tag, tags.front(), "the tag", "completions");
            tags.pop_front();
        }
        if (line.valid) {
            if (line.last)
                marks[LINE].pop_front();
            senders[LINE].moved();
        }
        if (host.valid && block.s_axis_sync_tx_tready) {
            if (host.last) {
                tags.push_back(marks[HOST].front().second);
                marks[HOST].pop_front();
            }
            senders[HOST].moved();
        }
        tick();
    }
    void send(int side, const Frame &f, bool bad = false) {
        senders[side].waiting.push_back(f);
        marks[side].push_back({bad, (u16)r.next()});
        if (!bad)
            (side == LINE ? expected_host : expected_line).push_back(f);
    }
    Frame frame(int side, u32 size, u8 flags = 0x10, u16 window = 60000) {
        return segment(side, 1 - side, size, flags, window, number++);
    }
    void finish_all(bool same = true) {
        for (int i = 0; i < 200000 && (!senders[0].waiting.empty() || !senders[1].waiting.empty()); i++)
            step();
        for (int i = 0; i < 3000; i++)
            step();
        check(to_host.frames.size(), expected_host.size(), "frames", "the host");
        check(to_line.frames.size(), expected_line.size(), "frames", "the line");
        if (same) {
            check(to_host.frames == expected_host, 1, "the frames", "the host");
            check(to_line.frames == expected_line, 1, "the frames", "the line");
        }
        check(tags.size(), 0, "completions missing", "completions");
        to_host.frames.clear(), to_line.frames.clear();
        expected_host.clear(), expected_line.clear();
    }
    u32 window_of_ack() {
        for (int i = 0; i < 3000; i++)
            step();
        send(LINE, frame(LINE, 60));
        for (int i = 0; i < 1000; i++)
            step();
        u32 window = word(to_host.frames.back(), 48);
        finish_all(false);
        return window;
    }
};

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;
    b.reset();
    for (int i = 0; i < 300; i++)
        b.step();
    for (int c = 0; c < cases; c++) {
        for (int i = 0; i < 40; i++)
            b.send(i % 2, b.frame(i % 2, b.r.pick<u32>({60, 61, 64, 590, 1514})), b.r.chance(20));
        b.finish_all();
    }
    // More frames of the host than completions can wait.
    for (int i = 0; i < 300; i++)
        b.send(HOST, b.frame(HOST, 60));
    b.finish_all();
    set_register(b, 0, "window_wscale_source", WSCALE_STRIPPED);
    set_register(b, 0, "port_scheme", 1);
    for (int i = 0; i < 600; i++)
        b.step();
    u32 alone = b.window_of_ack();
    for (int i = 0; i < 60; i++)
        b.send(LINE, b.frame(LINE, 60, 0x12));
    b.finish_all(false);
    check(b.window_of_ack() < alone, 1, "the window is lower", "60 flows");
    check(get_register(b, 0, "counter_acks_rewritten") > 0, 1, "counted", "60 flows");
    return finish(("corundum_app-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
