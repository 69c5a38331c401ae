// SPDX-License-Identifier: Apache-2.0
// In NetFPGA-PLUS's slot: frames leave in order with their tuser under back-pressure; with FairQ on
// MAC 0 its ACKs are lowered, those of MAC 1 and of the host never; HSCC follows the output queue.
#include "Vnetfpga_slot.h"
#include "streams.h"

struct Routed {
    Frame frame;
    u8 from, to; // as in tuser
    u32 mark;
};

struct Bench {
    Vnetfpga_slot block;
    uint64_t clocks = 0;
    void tick() {
        block.axis_aclk = 0;
        block.eval();
        block.axis_aclk = 1;
        block.eval();
        clocks++;
    }
    Random r{18};
    Sender sender;
    Receiver receiver;
    std::deque<Routed> sent, expected;
    std::vector<u32> windows[256]; // of what left, by source
    u32 busy = 0, number = 0;
    u32 stored = 0, removed = 0; // bytes that join and leave MAC 0's queue in the next clock

    void step() {
        Word w = r.chance(busy) ? Word() : sender.offer();
        put_bytes(block.s_axis_tdata, w.bytes, WORD_BYTES);
        block.s_axis_tkeep = w.keep, block.s_axis_tvalid = w.valid, block.s_axis_tlast = w.last;
        // After the first word tuser means nothing.
        for (int i = 0; i < 4; i++)
            block.s_axis_tuser[i] = r.next();
        if (w.first) {
            const Routed &f = sent.front();
            block.s_axis_tuser[0] = f.to << 24 | f.from << 16 | f.frame.size();
            block.s_axis_tuser[1] = f.mark;
        }
        block.m_axis_tready = !r.chance(busy);
        block.pkt_stored = stored != 0, block.bytes_stored = stored;
        block.pkt_removed = removed != 0, block.bytes_removed = removed;
        stored = removed = 0;
        block.eval();
        check(block.s_axis_tready, 1, "s_axis_tready", "the slot");
        if (block.m_axis_tvalid && block.m_axis_tready) {
            check(expected.empty(), 0, "a frame that none expects", "the slot");
            const Routed &f = expected.front();
            u32 user = f.to << 24 | f.from << 16 | f.frame.size();
            check(block.m_axis_tuser[0], user, "tuser", "the slot");
            check(block.m_axis_tuser[1], f.mark, "tuser, the upper part", "the slot");
            receiver.take(&block.m_axis_tdata, block.m_axis_tkeep, block.m_axis_tlast);
            if (block.m_axis_tlast)
                compare();
        }
        if (w.valid) {
            if (w.last)
                sent.pop_front();
            sender.moved();
        }
        tick();
    }
    void compare() {
        Frame &got = receiver.frames.back();
        const Routed &f = expected.front();
        windows[f.from].push_back(word(got, 48));
        // The window and the checksum may have changed, if the frame is MAC 0's.
        if (f.from == 1)
            for (u32 at : {48, 50})
                set_word(got, at, word(f.frame, at));
        check(got == f.frame, 1, "the same bytes", "from " + std::to_string(f.from));
        receiver.frames.clear();
        expected.pop_front();
    }
    void send(u8 from, u8 to, const Frame &f) {
        Routed routed{f, from, to, (u32)r.next()};
        sender.waiting.push_back(f);
        sent.push_back(routed), expected.push_back(routed);
    }
    Frame frame(u32 size, u8 flags = 0x10) { return segment(1, 2, size, flags, 60000, number++); }
    void drain() {
        for (int i = 0; i < 200000 && !expected.empty(); i++)
            step();
        check(expected.size(), 0, "frames left inside", "the slot");
        for (int i = 0; i < 1500; i++) // an event of FairQ
            step();
    }
};

// Frames join MAC 0's output queue and leave it, at times in one clock: HSCC clamps and ends it.
static void test_queue(Bench &b) {
    set_register(b, 0, "hscc_release_step_bytes", 0);
    set_register(b, 0, "port_scheme", 2);
    b.drain();
    auto window_at = [&](u32 source) {
        b.send(source, 4, b.frame(60));
        b.drain();
        return b.windows[source].back();
    };
    auto queue = [&](u32 stored, u32 removed) {
        b.stored = stored, b.removed = removed;
        b.step();
    };
    u32 packets = get_register(b, 0, "counter_egress_packets");
    u32 bytes = get_register(b, 0, "counter_egress_bytes");
    for (int i = 0; i < 3; i++) // up to 15000 bytes; the clamp begins at 16384
        queue(5000, 0);
    queue(1500, 1500);
    check(window_at(1), 60000, "the window", "a queue below alpha2");
    queue(3000, 0);
    check(window_at(1), 2920, "the window", "a queue beyond alpha2");
    check(window_at(4), 60000, "the window", "MAC 1");
    check(get_register(b, 0, "counter_clamps"), 1, "counted", "clamps");
    queue(1000, 10000); // 9000 bytes; the clamp ends at 6553
    check(window_at(1), 2920, "the window", "a queue above alpha1");
    queue(0, 5000);
    check(window_at(1), 60000, "the window", "a queue below alpha1");
    packets = get_register(b, 0, "counter_egress_packets") - packets;
    bytes = get_register(b, 0, "counter_egress_bytes") - bytes;
    check(packets, 3, "counted", "frames that left");
    check(bytes, 16500, "counted", "bytes that left");
}

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;
    b.block.axis_resetn = 0;
    b.tick();
    b.block.axis_resetn = 1;
    for (int i = 0; i < 1000; i++)
        b.step();
    for (int c = 0; c < cases; c++) {
        b.busy = b.r.pick<u32>({0, 20, 50});
        for (int i = 0; i < 30; i++)
            b.send(1 << b.r.below(8), b.r.next(), b.frame(b.r.pick<u32>({60, 64, 65, 590, 1514})));
        b.drain();
    }
    b.busy = 0;
    set_register(b, 0, "window_wscale_source", WSCALE_STRIPPED);
    set_register(b, 0, "port_scheme", 1);
    for (int i = 0; i < 1000; i++)
        b.step();
    u32 syns = get_register(b, 0, "counter_syns"), syns_1 = get_register(b, 1, "counter_syns");
    b.send(1, 4, b.frame(60));
    b.drain();
    u32 alone = b.windows[1].back();
    for (int flows = 0; flows < 40; flows++) {
        b.send(1, 4, b.frame(60, 0x12)); // a SYN-ACK by MAC 0 begins a flow there
        b.drain();
    }
    check(get_register(b, 0, "counter_syns") - syns, 40, "counted", "SYN-ACKs that enter by MAC 0");
    check(get_register(b, 1, "counter_syns") - syns_1, 40, "counted", "SYN-ACKs that leave by MAC 1");
    for (u8 flags : {0x10, 0x11, 0x14, 0x04, 0x18, 0x01, 0x02}) // four of them are ACKs or SYNs, no RST
        b.send(1, 4, segment(1, 2, 60, flags, 0, b.number++));
    b.drain();
    check(get_register(b, 0, "counter_zero_windows"), 4, "counted", "windows of 0");
    check(get_register(b, 1, "counter_zero_windows"), 0, "counted", "windows of 0, MAC 1");
    for (auto &one : b.windows)
        one.clear();
    for (u8 from : {1, 4, 2, 8})
        b.send(from, 16, b.frame(60));
    b.drain();
    check(b.windows[1].back() < alone, 1, "the window is lower", "MAC 0");
    check(b.windows[4].back(), 60000, "the window", "MAC 1");
    check(b.windows[2].back(), 60000, "the window", "the host");
    check(get_register(b, 0, "counter_acks_rewritten") > 0, 1, "counted", "MAC 0");
    check(get_register(b, 1, "counter_acks_rewritten"), 0, "counted", "MAC 1");
    test_queue(b);
    return finish(("netfpga_slot-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
