// SPDX-License-Identifier: Apache-2.0
// The product of two numbers of up to 36 bits: four products of halves, then two sums, each in a
// clock of its own. Latency: 3 clocks, 4 with RESTS, one product per clock.
`default_nettype none

module multiply #(
    parameter int unsigned A     = 32,  // bits
    parameter int unsigned B     = 32,
    parameter bit          RESTS = 0    // what leaves a multiplier has a clock to get to the sums
) (
    input  wire logic           clk,
    input  wire logic [  A-1:0] a,
    input  wire logic [  B-1:0] b,
    output logic      [A+B-1:0] product
);
  localparam int unsigned HALF = 18;  // what a multiplier of an FPGA takes

  if (A > 2 * HALF || B > 2 * HALF) begin : g_bad_size
    $fatal(1, "factors may have 36 bits");
  end

  logic [1:0][HALF-1:0] a_half, b_half;
  logic [1:0][1:0][2*HALF-1:0] products, parts;
  logic [  2*HALF:0] middle;
  logic [4*HALF-1:0] outer;

  assign a_half = (2 * HALF)'(a);
  assign b_half = (2 * HALF)'(b);
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < 2; i++)
    for (int unsigned k = 0; k < 2; k++) products[i][k] <= a_half[i] * b_half[k];
    middle  <= {1'b0, parts[0][1]} + {1'b0, parts[1][0]};
    outer   <= {parts[1][1], parts[0][0]};
    product <= (A + B)'(outer + {{(HALF - 1) {1'b0}}, middle, {HALF{1'b0}}});
  end

  if (RESTS) begin : g_rest
    always_ff @(posedge clk) parts <= products;
  end else begin : g_direct
    assign parts = products;
  end
endmodule

`default_nettype wire
