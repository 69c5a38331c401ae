// SPDX-License-Identifier: Apache-2.0
// The table of addresses against a plain map, with all four ports learning and asking: addresses
// that move, groups, resets. Frames of a port come four clocks apart at least, so each is learnt.
#include "Vmac_table.h"
#include "bench.h"

#include <algorithm>
#include <deque>

constexpr u32 PORTS = 4, LATENCY = 5, LEARNT = 8; // clocks until an address is in force

struct Bench : Clocked<Vmac_table> {
    std::map<uint64_t, u32> ports;
    static u32 hash(uint64_t address) {
        u32 all = 0;
        for (int i = 0; i < 48; i += 8)
            all ^= address >> i & 255;
        return all;
    }
    template <class T> static void put(T &signal, u32 port, uint64_t address) {
        for (u32 i = 0; i < 48; i++) {
            u32 bit = port * 48 + i;
            signal[bit / 32] = (signal[bit / 32] & ~(1u << bit % 32)) |
                               (u32)(address >> i & 1) << bit % 32;
        }
    }
    void restart() {
        block.valid = 0;
        reset();
        ports.clear();
        for (u32 i = 0; i < 256 + 2; i++)
            tick();
    }
    void learn(u32 port, uint64_t address) {
        if (address >> 40 & 1)
            return;
        // Of two with the same hash the later one stays.
        for (auto at = ports.begin(); at != ports.end();)
            at = hash(at->first) == hash(address) ? ports.erase(at) : std::next(at);
        ports[address] = port;
    }
    u32 outputs(u32 port, uint64_t address) {
        u32 others = 15 & ~(1 << port);
        auto at = address >> 40 & 1 ? ports.end() : ports.find(address);
        return at == ports.end() ? others : 1 << at->second & others;
    }
};

int main(int argc, char **argv) {
    Bench b;
    Random r(15);
    int cases = argc > 1 ? atoi(argv[1]) : 20;
    auto any = [&] {
        uint64_t host = r.below(40) * 0x010203040506ull & 0xfefefefefefeull;
        return r.chance(5) ? host | 1ull << 40 : host;
    };

    b.restart();
    for (int i = 0; i < 2000 * cases; i++) {
        // All ports in one clock, with different hosts, then time until they are learnt.
        uint64_t sources[PORTS];
        u32 valid = r.below(16);
        for (u32 p = 0; p < PORTS; p++) {
            do
                sources[p] = any();
            while (std::any_of(sources, sources + p, [&](uint64_t other) {
                return Bench::hash(other) == Bench::hash(sources[p]);
            }));
            Bench::put(b.block.source, p, sources[p]);
            if (valid >> p & 1)
                b.learn(p, sources[p]);
        }
        b.block.valid = valid;
        b.tick();
        b.block.valid = 0;
        for (u32 k = 0; k < LEARNT; k++)
            b.tick();
        // A question in every clock, by every port.
        std::deque<u32> expected;
        for (u32 k = 0; k < 8 + LATENCY; k++) {
            u32 answer = 0;
            for (u32 p = 0; p < PORTS; p++) {
                uint64_t address = any();
                Bench::put(b.block.destination, p, address);
                answer |= b.outputs(p, address) << 4 * p;
            }
            expected.push_back(answer);
            b.tick();
            if (expected.size() < LATENCY)
                continue;
            check(b.block.outputs, expected.front(), "the outputs", "round " + std::to_string(i));
            expected.pop_front();
        }
        if (r.chance(1) && r.chance(20))
            b.restart();
    }
    return finish("mac_table", b.clocks);
}
