// SPDX-License-Identifier: Apache-2.0
// The smallest window that keeps a flow going: `segments`, as long as the buffer holds as much of
// every flow, otherwise one. core: window_floor_bytes. Latency: 6 clocks, one floor per clock.
`default_nettype none

module window_floor (
    input  wire logic        clk,
    input  wire logic [15:0] mss_bytes,
    input  wire logic [ 7:0] segments,
    input  wire logic [ 3:0] shift,         // the scale, 14 at most
    input  wire logic [31:0] flows,
    input  wire logic [31:0] buffer_bytes,
    output logic      [23:0] floor
);
  // 1: bytes. 2: as written. 3 to 5: that of all flows. 6: whether it fits.
  logic [23:0] bytes_1, bytes_5;
  logic [14:0] below_unit_1;  // of the scale
  logic [24:0] written_2;
  logic [15:0] mss_5;
  logic [31:0] flows_2;
  logic [56:0] all_5;

  always_ff @(posedge clk) begin
    bytes_1 <= mss_bytes * segments;
    below_unit_1 <= ~(15'h7fff << shift);
    written_2 <= ({1'b0, bytes_1} + {10'b0, below_unit_1}) & ~{10'b0, below_unit_1};
    floor <= bytes_5 != 0 && all_5 > {25'b0, buffer_bytes} ? {8'b0, mss_5} : bytes_5;
  end

  delay #(
      .BITS  (32),
      .CLOCKS(2)
  ) flows_of (
      .clk,
      .value  (flows),
      .delayed(flows_2)
  );

  multiply #(
      .A(25),
      .B(32)
  ) all_flows (
      .clk,
      .a(written_2),
      .b(flows_2),
      .product(all_5)
  );

  delay #(
      .BITS  (16),
      .CLOCKS(5)
  ) mss_of (
      .clk,
      .value  (mss_bytes),
      .delayed(mss_5)
  );

  delay #(
      .BITS  (24),
      .CLOCKS(4)
  ) bytes_of (
      .clk,
      .value  (bytes_1),
      .delayed(bytes_5)
  );
endmodule

`default_nettype wire
