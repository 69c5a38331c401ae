// SPDX-License-Identifier: Apache-2.0
// A window field lowered to max(limit, floor) bytes, rounded up to the scale; never raised.
// core: tcp_lower_window. Latency: 4 clocks, one window per clock.
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
  typedef struct packed {
    logic [15:0] window;
    logic [3:0]  shift;
    logic        is_known;
    logic        is_floor;
  } field_t;

  // 1: bytes. 2: rounded. 3: scaled. 4: compared.
  field_t field_1, field_2, field_3;
  logic [31:0] bytes_1;
  logic [32:0] rounded_2, scaled_3;
  logic is_lower;

  assign is_lower = field_3.is_known && scaled_3 < {17'b0, field_3.window};

  always_ff @(posedge clk) begin
    field_1 <= {
      window,
      scale > TCP_MAX_SCALE[7:0] ? TCP_MAX_SCALE[3:0] : scale[3:0],
      scale != TCP_SCALE_UNKNOWN[7:0],
      limit < floor
    };
    bytes_1 <= limit < floor ? floor : limit;

    field_2 <= field_1;
    rounded_2 <= {1'b0, bytes_1} + {18'b0, ~(15'h7fff << field_1.shift)};

    field_3 <= field_2;
    scaled_3 <= rounded_2 >> field_2.shift;

    changed <= is_lower;
    floored <= is_lower && field_3.is_floor;
    lowered <= is_lower ? scaled_3[15:0] : field_3.window;
  end
endmodule

`default_nettype wire
