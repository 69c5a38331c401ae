// SPDX-License-Identifier: Apache-2.0
// A window never grows; what leaves is changed only if lower; an unknown scale leaves it alone; and
// what is written is at least the limit and the floor, in bytes.
module lower_window_formal
  import core_pkg::*;
(
    input logic        clk,
    input logic [15:0] window,
    input logic [ 7:0] scale,
    input logic [31:0] limit,
    input logic [31:0] floor
);
  logic [15:0] lowered;
  logic changed, floored;

  lower_window dut (
      .clk,
      .window,
      .scale,
      .limit,
      .floor,
      .lowered,
      .changed,
      .floored
  );

  logic [1:0] valid = 0;
  logic [15:0] window_1, window_2;
  logic [7:0] scale_1, scale_2;
  logic [31:0] limit_1, limit_2, floor_1, floor_2;
  logic [45:0] bytes;
  assign bytes = {30'b0, lowered} << (scale_2 > 8'd14 ? 8'd14 : scale_2);

  always_ff @(posedge clk) begin
    valid <= {valid[0], 1'b1};
    {window_2, window_1} <= {window_1, window};
    {scale_2, scale_1} <= {scale_1, scale};
    {limit_2, limit_1} <= {limit_1, limit};
    {floor_2, floor_1} <= {floor_1, floor};
    if (valid[1]) begin
      assert (lowered <= window_2);
      assert (changed == (lowered < window_2));
      assert (!floored || (changed && limit_2 < floor_2));
      if (scale_2 == TCP_SCALE_UNKNOWN[7:0]) assert (!changed);
      if (changed) assert (bytes >= {14'b0, limit_2} && bytes >= {14'b0, floor_2});
    end
  end
endmodule
