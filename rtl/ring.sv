// SPDX-License-Identifier: Apache-2.0
// A queue of words in a memory block, with the oldest at the output while `valid`. Its user keeps it
// from overflowing. Latency: 2 clocks; one word per clock in and out.
`default_nettype none

module ring #(
    parameter int unsigned BITS  = 73,
    parameter int unsigned WORDS = 4096  // a power of two
) (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            push,
    input  wire logic [BITS-1:0] value,
    output logic                 valid,
    output logic      [BITS-1:0] head,
    input  wire logic            pop
);
  localparam int unsigned INDEX = $clog2(WORDS);
  logic [BITS-1:0] memory[WORDS];
  logic [INDEX:0] written, read_at;
  logic reads;

  assign reads = read_at != written && (!valid || pop);

  always_ff @(posedge clk) begin
    if (push) memory[written[INDEX-1:0]] <= value;
    if (push) written <= written + 1'b1;
    if (reads) head <= memory[read_at[INDEX-1:0]];
    if (reads) read_at <= read_at + 1'b1;
    if (!valid || pop) valid <= reads;
    if (rst) begin
      written <= '0;
      read_at <= '0;
      valid   <= 1'b0;
    end
  end
endmodule

`default_nettype wire
