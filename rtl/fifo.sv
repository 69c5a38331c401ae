// SPDX-License-Identifier: Apache-2.0
// A queue of values; the oldest is at `head` while `valid`. Latency: 1 clock. The user keeps it from
// overflowing.
`default_nettype none

module fifo #(
    parameter int unsigned BITS  = 32,
    parameter int unsigned DEPTH = 16   // a power of two
) (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            push,
    input  wire logic [BITS-1:0] value,
    output logic                 valid,
    output logic      [BITS-1:0] head,
    input  wire logic            pop
);
  localparam int unsigned INDEX = $clog2(DEPTH);
  logic [BITS-1:0] memory[DEPTH];
  logic [INDEX:0] pushed, popped;

  assign valid = pushed != popped;
  assign head  = memory[popped[INDEX-1:0]];

  always_ff @(posedge clk) begin
    if (push) memory[pushed[INDEX-1:0]] <= value;
    if (push) pushed <= pushed + 1'b1;
    if (pop) popped <= popped + 1'b1;
    if (rst) begin
      pushed <= '0;
      popped <= '0;
    end
  end
endmodule

`default_nettype wire
