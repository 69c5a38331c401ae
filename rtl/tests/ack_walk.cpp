// SPDX-License-Identifier: Apache-2.0
// One ACK through the switch with FairQ, for the page that walks it clock by clock: writes the
// waveform (VCD) to the file that is its argument.
#include "switch_bench.h"
#include "verilated_vcd_c.h"

int main(int argc, char **argv) {
    if (argc != 2)
        return fprintf(stderr, "usage: ack_walk FILE.vcd\n"), 2;
    Verilated::traceEverOn(true);
    Bench b;
    VerilatedVcdC trace;
    b.reset();
    b.wait(300);
    b.learn();
    b.may_change = true;
    b.set(0, "port_scheme", 1);
    b.wait(500);
    for (int i = 0; i < 60; i++) // so many flows that windows are small
        b.send(0, b.frame(0, 1, 60, 0x12, i));
    b.run_empty();
    b.wait(3000);
    Frame before = b.frame(0, 1, 60); // of a window so small that nothing is changed
    set_word(before, 48, 1);
    b.send(0, before);
    b.run_empty();

    Frame ack = b.frame(0, 1, 60);
    set_word(ack, 16, 40);
    set_word(ack, 48, 60000);
    set_word(ack, 50, 0);
    b.send(0, ack);
    b.block.trace(&trace, 99);
    trace.open(argv[1]);
    for (int i = 0; i < 90; i++) {
        b.step(); // what the registers hold after this clock, and its inputs
        trace.dump(b.clocks * 10);
    }
    trace.close();
    return b.window < 60000 ? 0 : 1;
}
