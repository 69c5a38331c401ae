// SPDX-License-Identifier: Apache-2.0
// A queue of words in a memory block, with the oldest at the output while `valid`. Its user keeps it
// from overflowing. A memory block is slow to answer and far from what pops: what it reads rests in one
// of two registers before it is at the output, and it reads ahead whether or not one is popped now.
// Latency: 3 clocks; one word per clock in and out.
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

  if (WORDS != 1 << INDEX) begin : g_bad_size
    $fatal(1, "WORDS must be a power of two");
  end

  // No word is read in the clock in which it is written, so Yosys need not order the two.
  (* no_rw_check *)
  logic [BITS-1:0] memory[WORDS];
  logic [INDEX:0] written, read_at, read_after;
  logic [BITS-1:0] fetched;
  logic is_fetched, has_more, reads, moves;
  // Filled and emptied in turn.
  logic [1:0][BITS-1:0] held;
  logic [1:0] is_held;
  logic next_in, next_out;

  // Whether a word is left to read is known at the beginning of a clock.
  assign moves = is_fetched && !is_held[next_in];
  assign reads = has_more && (!is_fetched || moves);
  assign read_after = read_at + 1'b1;
  assign valid = is_held[next_out];
  assign head = held[next_out];

  always_ff @(posedge clk) begin
    if (push) memory[written[INDEX-1:0]] <= value;
    if (push) written <= written + 1'b1;
    if (reads) fetched <= memory[read_at[INDEX-1:0]];
    if (reads) read_at <= read_after;
    has_more   <= push || (reads ? read_after != written : read_at != written);
    is_fetched <= reads || (is_fetched && !moves);
    for (int unsigned i = 0; i < 2; i++) if (!is_held[i]) held[i] <= fetched;
    if (moves) is_held[next_in] <= 1'b1;
    if (moves) next_in <= !next_in;
    if (pop) is_held[next_out] <= 1'b0;
    if (pop) next_out <= !next_out;
    if (rst) begin
      written <= '0;
      read_at <= '0;
      has_more <= 1'b0;
      is_fetched <= 1'b0;
      is_held <= '0;
      next_in <= 1'b0;
      next_out <= 1'b0;
    end
  end
endmodule

`default_nettype wire
