// SPDX-License-Identifier: Apache-2.0
// A window field lowered to max(limit, floor) bytes, rounded up to the scale; never raised.
// core: tcp_lower_window. Latency: 2 clocks, one window per clock.
`default_nettype none

module lower_window
  import core_pkg::*;
(
    input  wire logic        clk,
    input  wire logic [15:0] window,   // the field, as on the wire
    input  wire logic [ 7:0] scale,    // TCP_SCALE_UNKNOWN: as it is
    input  wire logic [31:0] limit,    // bytes
    input  wire logic [31:0] floor,    // bytes
    output logic      [15:0] lowered,
    output logic             changed,
    output logic             floored
);
  logic [ 3:0] shift;
  logic [31:0] bytes;
  logic [32:0] field;
  logic [15:0] held;
  logic is_known, is_floor;

  assign shift = scale > TCP_MAX_SCALE[7:0] ? TCP_MAX_SCALE[3:0] : scale[3:0];
  assign bytes = limit > floor ? limit : floor;

  always_ff @(posedge clk) begin
    field <= ({1'b0, bytes} + {18'b0, ~(15'h7fff << shift)}) >> shift;
    held <= window;
    is_known <= scale != TCP_SCALE_UNKNOWN[7:0];
    is_floor <= limit < floor;

    changed <= is_known && field < {17'b0, held};
    floored <= is_known && field < {17'b0, held} && is_floor;
    lowered <= is_known && field < {17'b0, held} ? field[15:0] : held;
  end
endmodule

`default_nettype wire
