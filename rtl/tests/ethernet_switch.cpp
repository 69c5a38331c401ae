// SPDX-License-Identifier: Apache-2.0
// The switch end to end: registers as documented; frames arrive once, whole and, of each
// pair of ports, in order; none is lost at the lines' rate; in an overload each scheme does its part.
#include "switch_hostile.h"
#include "switch_line_rate.h"
#include "switch_resets.h"
#include "switch_settings.h"

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
    for (u32 at : {4 * NAMED, PORTS * 0x400u, 0x80000000u, 1u}) {
        check(b.write(at, 1), 2, "refused", "no register");
        b.read(at, &response);
        check(response, 2, "refused", "no register");
    }
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

// All others send to port 0 at the lines' rate; from there come ACKs. One sender alone fills a queue
// only if the line waits.
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
    b.busy = PORTS == 2 ? 40 : 0;
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
    b.busy = 0;
    u32 sent = (PORTS - 1) * frames;
    rewritten = b.get(0, "counter_acks_rewritten") - rewritten;
    acks = b.get(0, "counter_acks") - acks;
    check(b.get(0, "counter_egress_packets") - out, b.left[0] - left, "counted", names[scheme]);
    check(acks, sent + 5 * (PORTS - 1), "ACKs counted", names[scheme]);
    check(rewritten > 0, scheme == 1 || scheme == 2, "windows are lowered", names[scheme]);
    check(b.get(0, "counter_clamps") > clamps, scheme == 2, "a clamp", names[scheme]);
    check(b.left[0] - left < sent, 1, "an overload", names[scheme]);
    printf("%s: %llu of %u frames left, %u of %u ACKs lowered\n", names[scheme],
           (unsigned long long)(b.left[0] - left), sent, rewritten, acks);
    b.set(0, "port_scheme", 0);
    for (int i = 0; i < 100; i++)
        b.step();
}

int main(int argc, char **argv) {
    Bench b;
    int cases = argc > 1 ? atoi(argv[1]) : 20;

    b.restart();
    test_settings(b);
    if (SCHEMES == 15) {
        test_registers(b);
        for (int i = 0; i < 300; i++)
            b.step();
        test_line_rate(b, cases);
        test_hostile(b, cases);
        test_runts(b, cases);
        test_resets(b, cases);
    }
    test_mix(b, 50 * cases);
    for (u32 scheme = 0; SCHEMES == 15 && scheme < 4; scheme++)
        test_scheme(b, scheme, std::max(10 * cases, 60)); // more than the buffer holds
    uint64_t frames = 0;
    for (uint64_t left : b.left)
        frames += left;
    printf("%llu frames; ", (unsigned long long)frames);
    std::string name = "ethernet_switch-" + std::to_string(WIDTH) + "-" + std::to_string(PORTS);
    if (SCHEMES != 15)
        name += "-" + std::to_string(SCHEMES);
    return finish(name.c_str(), b.clocks);
}
