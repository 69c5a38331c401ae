// SPDX-License-Identifier: Apache-2.0
// The size of a port's segments: the largest full one of this second and the one before.
// core: segment_on_data, with the time of the clock before. Latency: 1 clock, one segment per clock.
`default_nettype none

module segment
  import core_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [63:0] now_ns,
    input  wire logic        valid,
    input  wire logic [15:0] size_bytes,
    input  wire logic        is_full,     // as large as its sender makes them
    output logic      [15:0] bytes        // 0: none has passed
);
  logic [63:0] then_ns, due_ns;  // the clock before; when the period ends
  logic [15:0] latest;
  logic is_over, is_heeded;
  logic [15:0] known, former;

  assign is_heeded = valid && (size_bytes > bytes ||
      (size_bytes != 0 && is_full && (size_bytes > latest || is_over)));
  assign known = is_over ? latest : bytes;
  assign former = is_over ? '0 : latest;

  always_ff @(posedge clk) begin
    then_ns <= now_ns;
    is_over <= now_ns >= due_ns;
    if (is_heeded) begin
      if (is_over) begin
        due_ns  <= then_ns + SEGMENT_PERIOD_NS;
        is_over <= 1'b0;
      end
      bytes  <= size_bytes > known ? size_bytes : known;
      latest <= size_bytes > former ? size_bytes : former;
    end
    if (rst) begin
      due_ns  <= SEGMENT_PERIOD_NS;
      is_over <= 1'b0;
      bytes   <= '0;
      latest  <= '0;
    end
  end
endmodule

`default_nettype wire
