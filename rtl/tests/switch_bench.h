// SPDX-License-Identifier: Apache-2.0
// The switch with senders and receivers on its ports.
#pragma once

#include "Vethernet_switch.h"
#include "frames.h"

#include <algorithm>
#include <deque>

#ifndef PORT_COUNT
#define PORT_COUNT 4
#endif
#ifndef SCHEMES
#define SCHEMES 15
#endif
constexpr int PORTS = PORT_COUNT;
constexpr bool is_built(u32 scheme) { return SCHEMES >> scheme & 1; }
constexpr u32 REGISTER_CLOCKS = 4; // from a request to its response
constexpr u32 NAMED = sizeof(registers) / sizeof(*registers);

static u32 index_of(const std::string &name) {
    for (u32 i = 0; i < NAMED; i++)
        if (name == registers[i].name)
            return i;
    check(0, 1, "a register of this name", name);
    return 0;
}

struct Bench : Clocked<Vethernet_switch> {
    Random r{14};
    std::deque<Frame> waiting[PORTS]; // to enter
    size_t at[PORTS] = {};
    std::deque<Frame> expected[PORTS][PORTS * 8]; // [output][line_of]
    Frame leaving[PORTS];
    uint64_t left[PORTS] = {}, left_bytes[PORTS] = {};
    // Clocks in which the last frame's end entered, the first word left and the last one did.
    uint64_t last_in[PORTS] = {};
    uint64_t first_out[PORTS] = {}, last_out[PORTS] = {}, words_out[PORTS] = {};
    u32 window = 0;      // of the last frame that left, if it is TCP over plain IPv4
    u64 marked[PORTS] = {}, syns[PORTS] = {}; // frames that left with CE; that are SYNs
    bool is_bad = false; // the MAC marks what enters
    u32 idle = 0, busy = 0;
    u32 stopped = 0; // a bit for each port that cannot send
    bool may_lose = false, may_change = false, by_flow = false;

    template <class T> static void put_lane(T &signal, int port, const void *bytes, u32 size) {
        memcpy((char *)&signal + port * size, bytes, size);
    }
    void step() {
        u32 valid = 0, last = 0, ready = 0;
        for (int i = 0; i < PORTS; i++) {
            uint8_t word[WORD_BYTES] = {};
            uint64_t keep = 0;
            ready |= (!r.chance(busy) && !(stopped >> i & 1)) << i;
            if (waiting[i].empty() || r.chance(idle))
                continue;
            const Frame &f = waiting[i].front();
            u32 count = std::min<size_t>(WORD_BYTES, f.size() - at[i]);
            memcpy(word, &f[at[i]], count);
            keep = count == 64 ? ~0ull : (1ull << count) - 1;
            put_lane(block.rx_tdata, i, word, WORD_BYTES);
            put_lane(block.rx_tkeep, i, &keep, WORD_BYTES / 8);
            valid |= 1 << i;
            at[i] += count;
            if (at[i] == f.size()) {
                last |= 1 << i;
                waiting[i].pop_front();
                at[i] = 0;
                last_in[i] = clocks;
            }
        }
        block.rx_tvalid = valid;
        block.rx_tlast = last;
        block.rx_tuser = is_bad ? last : 0;
        block.tx_tready = ready;
        block.eval();
        for (int i = 0; i < PORTS; i++) {
            if (!(block.tx_tvalid & ready & 1 << i)) {
                continue;
            }
            if (!words_out[i]++)
                first_out[i] = clocks;
            last_out[i] = clocks;
            uint8_t word[WORD_BYTES];
            uint64_t keep = 0;
            memcpy(word, (char *)&block.tx_tdata + i * WORD_BYTES, WORD_BYTES);
            memcpy(&keep, (char *)&block.tx_tkeep + i * WORD_BYTES / 8, WORD_BYTES / 8);
            for (u32 k = 0; k < WORD_BYTES && keep >> k & 1; k++)
                leaving[i].push_back(word[k]);
            if (block.tx_tlast >> i & 1)
                compare(i);
        }
        tick();
    }
    // What keeps its order: all from one input, with HCF a flow of it.
    u32 line_of(const Frame &f) { return f[11] * 8 + (by_flow ? f[35] & 7 : 0); }
    // The frame's last four bytes are its number, its source address is that of its input.
    void compare(int output) {
        Frame f;
        f.swap(leaving[output]);
        int input = f[11];
        auto &line = expected[output][line_of(f)];
        std::string where = "output " + std::to_string(output) + ", from " + std::to_string(input);
        left[output]++;
        window = f.size() >= 54 ? word(f, 48) : 0;
        left_bytes[output] += f.size();
        marked[output] += f.size() >= 54 && word(f, 12) == 0x0800 && (f[15] & 3) == 3;
        syns[output] += f.size() >= 54 && f[47] == TCP_FLAG_SYN;
        while (may_lose && !line.empty() && memcmp(&line.front().end()[-4], &f.end()[-4], 4))
            line.pop_front();
        check(line.empty(), 0, "a frame that none expects", where);
        check(f.size(), line.front().size(), "its length", where);
        if (!may_change)
            check(f == line.front(), 1, "the same bytes", where);
        line.pop_front();
    }
    u32 number = 0;
    // A TCP segment, or an ACK of size 60.
    Frame frame(int input, int output, u32 size, u8 flags = 0x10, u16 flow = 0) {
        Frame f(size);
        f[5] = output == 255 ? 255 : output;
        f[0] = output == 255 ? 255 : 0;
        f[11] = input;
        set_word(f, 12, 0x0800);
        f[14] = 0x45;
        set_word(f, 16, size - 14);
        f[22] = 64, f[23] = 6;
        f[29] = input, f[33] = output;
        set_word(f, 34, flow), set_word(f, 36, 80);
        set_word(f, 46, 0x5000 | flags);
        set_word(f, 48, 60000);
        set_word(f, size - 4, number >> 16), set_word(f, size - 2, number);
        if (size == 60)
            set_word(f, 16, 40); // the number is in the padding
        number++;
        set_word(f, 24, ~sum_words(f, 14, 34));
        return f;
    }
    void send(int input, const Frame &f) {
        int output = f[0] & 1 ? 255 : f[5];
        for (int i = 0; i < PORTS; i++)
            if (i != input && (i == output || output == 255))
                expected[i][line_of(f)].push_back(f);
        waiting[input].push_back(f);
    }
    void run_empty(u32 clocks = 200000) {
        auto is_done = [&] {
            for (int i = 0; i < PORTS; i++) {
                if (!waiting[i].empty() || !leaving[i].empty())
                    return false;
                for (auto &line : expected[i])
                    if (!line.empty() && !may_lose)
                        return false;
            }
            return true;
        };
        for (u32 i = 0; i < clocks && !is_done(); i++)
            step();
        for (int i = 0; i < (may_lose ? 20000 : 100); i++)
            step();
        check(is_done(), 1, "all frames arrived", "the switch");
        for (auto &lines : expected)
            for (auto &line : lines)
                line.clear();
    }
    u32 write(u32 address, u32 value) {
        block.s_axil_awaddr = address, block.s_axil_wdata = value;
        block.s_axil_wstrb = 15;
        block.s_axil_awvalid = block.s_axil_wvalid = block.s_axil_bready = 1;
        step();
        block.s_axil_awvalid = block.s_axil_wvalid = 0;
        wait(REGISTER_CLOCKS - 1);
        check(block.s_axil_bvalid, 1, "a response", "write");
        u32 response = block.s_axil_bresp;
        step();
        return response;
    }
    u32 read(u32 address, u32 *response = nullptr) {
        block.s_axil_araddr = address;
        block.s_axil_arvalid = block.s_axil_rready = 1;
        step();
        block.s_axil_arvalid = 0;
        wait(REGISTER_CLOCKS - 1);
        check(block.s_axil_rvalid, 1, "a response", "read");
        u32 value = block.s_axil_rdata;
        if (response)
            *response = block.s_axil_rresp;
        step();
        return value;
    }
    u32 address(int port, const std::string &name) { return port * 0x400 + 4 * index_of(name); }
    u32 get(int port, const std::string &name) { return read(address(port, name)); }
    void set(int port, const std::string &name, u32 value) {
        check(write(address(port, name), value), 0, "accepted", name);
    }
    // Clocks without a word between the first that left and the last.
    uint64_t gaps(int i) { return last_out[i] - first_out[i] + 1 - words_out[i]; }
    void forget_words() { memset(words_out, 0, sizeof(words_out)); }
    void wait(u32 count) {
        for (u32 i = 0; i < count; i++)
            step();
    }
    // All that is inside or on the lines is gone.
    void restart() {
        block.rx_tvalid = 0;
        reset();
        for (int i = 0; i < PORTS; i++) {
            waiting[i].clear(), leaving[i].clear();
            at[i] = 0;
            for (auto &line : expected[i])
                line.clear();
        }
        wait(300); // the table of addresses and HCF's bins are cleared
    }
    void learn() {
        for (int i = 0; i < PORTS; i++)
            send(i, frame(i, 255, 60));
        run_empty();
    }
};

