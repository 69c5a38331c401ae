// SPDX-License-Identifier: Apache-2.0
// The four-port switch end to end: registers as documented; frames arrive once, whole and, of each
// pair of ports, in order; none is lost below the lines' rate; back-to-back frames of every size on
// all ports at once; in an overload each scheme does its part.
#include "Vethernet_switch.h"
#include "frames.h"

#include <deque>

constexpr int PORTS = 4;
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
    uint64_t left[PORTS] = {}, left_bytes[PORTS] = {}, bubbles = 0;
    u32 idle = 0, busy = 0;
    bool may_lose = false, may_change = false, by_flow = false;

    template <class T> static void put_lane(T &signal, int port, const void *bytes, u32 size) {
        memcpy((char *)&signal + port * size, bytes, size);
    }
    void step() {
        u32 valid = 0, last = 0, ready = 0;
        for (int i = 0; i < PORTS; i++) {
            uint8_t word[WORD_BYTES] = {};
            uint64_t keep = 0;
            ready |= !r.chance(busy) << i;
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
            }
        }
        block.rx_tvalid = valid;
        block.rx_tlast = last;
        block.rx_tuser = 0;
        block.tx_tready = ready;
        block.eval();
        for (int i = 0; i < PORTS; i++) {
            if (!(block.tx_tvalid & ready & 1 << i)) {
                bubbles += !leaving[i].empty() && ready >> i & 1;
                continue;
            }
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
        left_bytes[output] += f.size();
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
    void learn() {
        for (int i = 0; i < PORTS; i++)
            send(i, frame(i, 255, 60));
        run_empty();
    }
};

static void test_registers(Bench &b) {
    for (int port = 0; port < PORTS; port++)
        for (u32 i = 0; i < NAMED; i++) {
            auto &row = registers[i];
            u32 at = port * 0x400 + 4 * i, response;
            check(b.read(at, &response), row.reset, "reset value", row.name);
            check(response, 0, "response", row.name);
            if (row.is_counter) {
                check(b.write(at, 0), 2, "refused", row.name);
                continue;
            }
            for (u32 value : {row.min, row.max, (u32)(row.min + b.r.below(row.max - row.min))}) {
                check(b.write(at, value), 0, "accepted", row.name);
                check(b.read(at), value, "the value", row.name);
            }
            u32 before = b.read(at);
            if (row.min)
                check(b.write(at, row.min - 1), 2, "refused", row.name);
            if (row.max != 0xffffffff)
                check(b.write(at, row.max + 1), 2, "refused", row.name);
            check(b.read(at), before, "unchanged", row.name);
            b.set(port, row.name, row.reset);
        }
    u32 response;
    for (u32 at : {4 * NAMED, 0x1000u, 0x80000000u, 1u}) {
        check(b.write(at, 1), 2, "refused", "no register");
        b.read(at, &response);
        check(response, 2, "refused", "no register");
    }
}

static void test_every_size(Bench &b, u32 step) {
    b.learn();
    uint64_t words = 0, clocks = b.clocks;
    b.bubbles = 0;
    for (u32 size = 60; size <= 9018; size += size < 200 ? 1 : step)
        for (int i = 0; i < PORTS; i++) // each output gets the whole rate of one input
            for (int k = 0; k < 3; k++) {
                b.send(i, b.frame(i, (i + 1) % PORTS, size));
                words += i ? 0 : (size + WORD_BYTES - 1) / WORD_BYTES;
            }
    b.run_empty(4000000);
    // One longest frame is stored before it leaves; run_empty adds 100 clocks.
    check(b.clocks - clocks < words + 9018 / WORD_BYTES + 300, 1, "a word in every clock", "line rate");
    check(b.bubbles, 0, "clocks without a word within a frame", "line rate");
}

static void test_mix(Bench &b, int frames) {
    b.learn();
    b.idle = 40, b.busy = 10;
    for (int i = 0; i < frames; i++) {
        int input = b.r.below(PORTS), output = b.r.chance(10) ? 255 : b.r.below(PORTS);
        if (output == input)
            output = (input + 1) % PORTS;
        b.send(input, b.frame(input, output, b.r.pick<u32>({60, 60, 61, 64, 590, 1514})));
        for (int k = 0; k < 150; k++)
            b.step();
    }
    b.run_empty();
    b.idle = b.busy = 0;
}

// Three inputs send to port 0 at the lines' rate; from there come ACKs.
static void test_scheme(Bench &b, u32 scheme, int frames) {
    static const char *names[] = {"none", "fairq", "hscc", "hcf"};
    b.learn();
    b.may_change = true;
    b.by_flow = scheme == 3;
    b.set(0, "port_scheme", scheme);
    for (int i = 0; i < 100; i++)
        b.step();
    u32 acks = b.get(0, "counter_acks"), rewritten = b.get(0, "counter_acks_rewritten");
    u32 out = b.get(0, "counter_egress_packets"), clamps = b.get(0, "counter_clamps");
    for (int i = 1; i < PORTS; i++) // handshakes: SYN-ACKs through port 0
        for (int k = 0; k < 5; k++)
            b.send(0, b.frame(0, i, 60, 0x12, k));
    for (int k = 0; k < 300; k++)
        b.step();
    b.may_lose = true;
    uint64_t left = b.left[0];
    for (int i = 0; i < frames; i++) {
        for (int input = 1; input < PORTS; input++) {
            b.send(input, b.frame(input, 0, 1514, 0x10, i % 5));
            b.send(0, b.frame(0, input, 60, 0x10, i % 5));
        }
        for (u32 k = 0; k < 1514 / WORD_BYTES; k++)
            b.step();
    }
    b.run_empty(4000000);
    b.may_lose = b.may_change = b.by_flow = false;
    rewritten = b.get(0, "counter_acks_rewritten") - rewritten;
    acks = b.get(0, "counter_acks") - acks;
    check(b.get(0, "counter_egress_packets") - out, b.left[0] - left, "counted", names[scheme]);
    check(acks, 3 * frames + 15, "ACKs counted", names[scheme]);
    check(rewritten > 0, scheme == 1 || scheme == 2, "windows are lowered", names[scheme]);
    check(b.get(0, "counter_clamps") > clamps, scheme == 2, "a clamp", names[scheme]);
    check(b.left[0] - left < 3u * frames, 1, "an overload", names[scheme]);
    printf("%s: %llu of %d frames left, %u of %u ACKs lowered\n", names[scheme],
           (unsigned long long)(b.left[0] - left), 3 * frames, rewritten, acks);
    b.set(0, "port_scheme", 0);
    for (int i = 0; i < 100; i++)
        b.step();
}

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    b.reset();
    for (int i = 0; i < 300; i++)
        b.step();
    test_registers(b);
    for (int i = 0; i < 300; i++)
        b.step();
    test_every_size(b, 9000 / cases);
    test_mix(b, 50 * cases);
    for (u32 scheme = 0; scheme < 4; scheme++)
        test_scheme(b, scheme, 10 * cases);
    return finish(("ethernet_switch-" + std::to_string(WIDTH)).c_str(), b.clocks);
}
