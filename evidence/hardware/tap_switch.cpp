// SPDX-License-Identifier: Apache-2.0
// The Verilated switch between real hosts: each port is a TAP device, the clock is a slow one.
//
//	tap_switch CLOCK_NS DEVICE... [-- PORT:REGISTER=VALUE...]
//
// Makes the devices, prints "ready", and switches frames until its standard input ends; then it
// prints the counters of each port, and how many clocks it was late at most, as JSON. A clock of
// 20 us makes 64 bits a line of 3.2 Mb/s; CLOCK_PS of the model has to be the same, or the times in
// registers are not those of the hosts.
#include "Vethernet_switch.h"

#include "params.h"
#include "verilated.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

constexpr int PORTS = 4, WORD = 8;
constexpr int SHORTEST = 60, LONGEST = 9018;
constexpr uint64_t MOST_LATE_NS = 5000000;

struct Line {
    int device = -1;
    uint8_t entering[LONGEST], leaving[LONGEST];
    int size = 0, at = 0, out = 0;
    bool is_readable = false;
};

static Vethernet_switch block;
static Line lines[PORTS];
static uint64_t clocks;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void open_device(Line &line, const char *name) {
    ifreq request{};
    line.device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (line.device < 0)
        fail("/dev/net/tun");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(line.device, TUNSETIFF, &request) < 0)
        fail(name);
}

static void tick() {
    block.clk = 0;
    block.eval();
    block.clk = 1;
    block.eval();
    clocks++;
}

// A word of each line in and out. Returns whether any line was in use.
static bool step() {
    bool is_used = false;
    uint64_t *words = (uint64_t *)&block.rx_tdata;
    uint8_t *keep = (uint8_t *)&block.rx_tkeep;
    block.rx_tvalid = block.rx_tlast = 0;
    for (int i = 0; i < PORTS; i++) {
        Line &line = lines[i];
        if (!line.size) {
            ssize_t size = line.is_readable ? read(line.device, line.entering, LONGEST) : -1;
            line.is_readable = size > 0;
            if (size <= 0)
                continue;
            // A MAC fills short frames up.
            for (; size < SHORTEST; size++)
                line.entering[size] = 0;
            line.size = size;
            line.at = 0;
        }
        int count = std::min(WORD, line.size - line.at);
        words[i] = 0;
        memcpy(&words[i], line.entering + line.at, count);
        keep[i] = (1 << count) - 1;
        line.at += count;
        block.rx_tvalid |= 1 << i;
        if (line.at == line.size) {
            block.rx_tlast |= 1 << i;
            line.size = 0;
        }
        is_used = true;
    }
    block.eval();
    const uint64_t *sent = (const uint64_t *)&block.tx_tdata;
    for (int i = 0; i < PORTS; i++) {
        Line &line = lines[i];
        if (!(block.tx_tvalid >> i & 1))
            continue;
        int count = __builtin_popcount(((const uint8_t *)&block.tx_tkeep)[i]);
        memcpy(line.leaving + line.out, &sent[i], count);
        line.out += count;
        if (block.tx_tlast >> i & 1) {
            // A host that is not up yet takes nothing.
            if (write(line.device, line.leaving, line.out) < 0 && errno != EIO && errno != EAGAIN)
                fail("write");
            line.out = 0;
        }
        is_used = true;
    }
    tick();
    return is_used;
}

static uint32_t address(int port, const std::string &name) {
    for (size_t i = 0; i < sizeof(registers) / sizeof(*registers); i++)
        if (name == registers[i].name)
            return port * 0x400 + 4 * i;
    fprintf(stderr, "%s: no such register\n", name.c_str());
    exit(1);
}

static void set(const std::string &text) {
    size_t colon = text.find(':'), equals = text.find('=');
    if (colon == std::string::npos || equals == std::string::npos) {
        fprintf(stderr, "%s: give PORT:REGISTER=VALUE\n", text.c_str());
        exit(1);
    }
    block.s_axil_awaddr =
        address(atoi(text.c_str()), text.substr(colon + 1, equals - colon - 1));
    block.s_axil_wdata = strtoul(text.c_str() + equals + 1, nullptr, 0);
    block.s_axil_wstrb = 15;
    block.s_axil_awvalid = block.s_axil_wvalid = block.s_axil_bready = 1;
    tick();
    block.s_axil_awvalid = block.s_axil_wvalid = 0;
    while (!block.s_axil_bvalid)
        tick();
    if (block.s_axil_bresp) {
        fprintf(stderr, "%s: refused by the switch\n", text.c_str());
        exit(1);
    }
    tick();
}

static uint32_t get(uint32_t at) {
    block.s_axil_araddr = at;
    block.s_axil_arvalid = block.s_axil_rready = 1;
    tick();
    block.s_axil_arvalid = 0;
    while (!block.s_axil_rvalid)
        tick();
    uint32_t value = block.s_axil_rdata;
    tick();
    return value;
}

static uint64_t now_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char **argv) {
    if (argc < 2 + PORTS) {
        fprintf(stderr, "usage: tap_switch CLOCK_NS DEVICE... [-- PORT:REGISTER=VALUE...]\n");
        return 2;
    }
    uint64_t clock_ns = strtoull(argv[1], nullptr, 10), late_ns = 0;
    for (int i = 0; i < PORTS; i++)
        open_device(lines[i], argv[2 + i]);
    block.rst = 1;
    tick();
    block.rst = 0;
    for (int i = 0; i < 300; i++) // HCF clears its bins
        tick();
    for (int i = 3 + PORTS; i < argc; i++)
        set(argv[i]);
    block.tx_tready = -1;
    puts("ready");
    fflush(stdout);

    pollfd ready[PORTS + 1];
    for (int i = 0; i < PORTS; i++)
        ready[i] = {lines[i].device, POLLIN, 0};
    ready[PORTS] = {0, POLLIN, 0};
    uint64_t due = now_ns();
    bool is_used = false;
    char byte;
    for (;;) {
        poll(ready, PORTS + 1, is_used ? 0 : 1);
        if (ready[PORTS].revents && read(0, &byte, 1) <= 0)
            break;
        for (int i = 0; i < PORTS; i++)
            lines[i].is_readable = ready[i].revents & POLLIN;
        uint64_t now = now_ns();
        // What cannot be caught up with makes the line slower, not the clock faster.
        if (now > due + MOST_LATE_NS) {
            late_ns += now - due - MOST_LATE_NS;
            due = now - MOST_LATE_NS;
        }
        is_used = false;
        for (; due <= now; due += clock_ns)
            is_used |= step();
    }
    printf("{\"clocks\": %llu, \"late_s\": %.3f, \"ports\": [", (unsigned long long)clocks,
           late_ns / 1e9);
    for (int port = 0; port < PORTS; port++) {
        const char *comma = port ? ", {" : "{";
        for (auto &row : registers)
            if (row.is_counter) {
                printf("%s\"%s\": %u", comma, row.name + strlen("counter_"),
                       get(address(port, row.name)));
                comma = ", ";
            }
        printf("}");
    }
    printf("]}\n");
    return 0;
}
