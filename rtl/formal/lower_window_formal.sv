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

  // What was asked, as long ago as an answer takes.
  typedef struct packed {
    logic        valid;
    logic [15:0] window;
    logic [7:0]  scale;
    logic [31:0] limit;
    logic [31:0] floor;
  } question_t;
  question_t [3:0] asked = '0;
  question_t q;
  logic [45:0] bytes;
  assign q = asked[3];
  assign bytes = {30'b0, lowered} << (q.scale > 8'd14 ? 8'd14 : q.scale);

  always_ff @(posedge clk) begin
    asked <= {asked[2:0], 1'b1, window, scale, limit, floor};
    if (q.valid) begin
      assert (lowered <= q.window);
      assert (changed == (lowered < q.window));
      assert (!floored || (changed && q.limit < q.floor));
      if (q.scale == TCP_SCALE_UNKNOWN[7:0]) assert (!changed);
      if (changed) assert (bytes >= {14'b0, q.limit} && bytes >= {14'b0, q.floor});
    end
  end
endmodule
