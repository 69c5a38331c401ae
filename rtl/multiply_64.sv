// SPDX-License-Identifier: Apache-2.0
// The lower 64 bits of a product of 64-bit numbers. Latency: 6 clocks, one product per clock.
`default_nettype none

module multiply_64 (
    input  wire logic        clk,
    input  wire logic [63:0] a,
    input  wire logic [63:0] b,
    output logic      [63:0] product
);
  logic [63:0] low, low_5, cross_a, cross_b;
  logic [31:0] cross_5;

  multiply #(
      .RESTS(1)
  ) lows (
      .clk,
      .a(a[31:0]),
      .b(b[31:0]),
      .product(low)
  );

  multiply #(
      .RESTS(1)
  ) high_a (
      .clk,
      .a(a[63:32]),
      .b(b[31:0]),
      .product(cross_a)
  );

  multiply #(
      .RESTS(1)
  ) high_b (
      .clk,
      .a(a[31:0]),
      .b(b[63:32]),
      .product(cross_b)
  );

  always_ff @(posedge clk) begin
    low_5   <= low;
    cross_5 <= cross_a[31:0] + cross_b[31:0];
    product <= low_5 + {cross_5, 32'b0};
  end
endmodule

`default_nettype wire
