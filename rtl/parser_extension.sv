// SPDX-License-Identifier: Apache-2.0
// A stage of the parser: one extension header of IPv6, if the walk is at one.
//
// Latency: 3 clocks.
`default_nettype none

module parser_extension
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned LANES   = 4,  // words of 16 bits in a clock
    parameter bit          IS_LAST = 0   // what follows must not be an extension header
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    input  wire logic  [LANES-1:0][15:0] words,
    input  wire logic  [LANES-1:0]       has,
    input  wire beat_t                   beat,
    input  wire walk_t                   walk,
    output logic       [LANES-1:0][15:0] next_words,
    output logic       [LANES-1:0]       next_has,
    output beat_t                        next_beat,
    output walk_t                        next_walk
);
  localparam int unsigned BITS = $clog2(LANES);
  localparam logic [7:0] HOP = 8'd0, TCP = 8'd6, UDP = 8'd17, ROUTING = 8'd43, FRAGMENT = 8'd44;
  localparam logic [7:0] DESTINATION = 8'd60;
  localparam logic [10:0] MAX_AT = 11'd512;

  logic [1:0][LANES-1:0][15:0] words_at;
  logic [1:0][LANES-1:0] has_at;
  beat_t [1:0] beat_at;
  walk_t walk_1, walk_2;

  // 1: whether the header's first two words are here.
  logic is_first_1, is_second_1;
  logic [BITS-1:0] first_lane_1, second_lane_1;
  logic [10:0] second_at;
  assign second_at = walk.at + 11'd1;
  // 2: what they hold.
  logic [7:0] protocol_2, units_2;
  logic has_header_2, is_typed_2;
  // 3: where the next header begins.
  logic [10:0] next_at;
  assign next_at = walk_2.at + {1'b0, units_2, 2'b0} + 11'd4;

  always_ff @(posedge clk) begin
    words_at <= {words_at[0], words};
    has_at <= {has_at[0], has};
    beat_at <= {beat_at[0], beat};
    next_words <= words_at[1];
    next_has <= has_at[1];
    next_beat <= beat_at[1];

    walk_1 <= walk;
    is_first_1 <= beat.valid && walk.is_active && !walk.is_tcp &&
        32'(walk.at[10:BITS]) == 32'(beat.index);
    is_second_1 <= beat.valid && walk.is_active && !walk.is_tcp &&
        32'(second_at[10:BITS]) == 32'(beat.index);
    first_lane_1 <= walk.at[BITS-1:0];
    second_lane_1 <= second_at[BITS-1:0];

    walk_2 <= walk_1;
    if (is_first_1) {protocol_2, units_2} <= words_at[0][first_lane_1];
    if (beat_at[0].valid && beat_at[0].first) has_header_2 <= 1'b0;
    if (is_second_1) begin
      is_typed_2   <= words_at[0][second_lane_1][7:0] != 0;
      has_header_2 <= has_at[0][second_lane_1];
    end

    next_walk <= walk_2;
    if (walk_2.is_active && !walk_2.is_tcp) begin
      next_walk.is_active <= 1'b0;
      next_walk.at <= next_at;
      if (has_header_2) begin
        next_walk.is_tcp <= protocol_2 == TCP;
        next_walk.is_routing <= protocol_2 == ROUTING;
        next_walk.is_done <= 1'b1;
        next_walk.reason <= PASS_NOT_TCP;
        if (walk_2.is_routing && is_typed_2)
          next_walk.reason <= PASS_TOO_DEEP;  // the addresses are not the flow's
        else if (protocol_2 == TCP) begin
          next_walk.is_done   <= 1'b0;
          next_walk.is_active <= 1'b1;
        end else if (IS_LAST && protocol_2 != UDP) next_walk.reason <= PASS_TOO_DEEP;
        else if (protocol_2 == FRAGMENT) next_walk.reason <= PASS_FRAGMENT;
        else if (protocol_2 == HOP || protocol_2 == ROUTING || protocol_2 == DESTINATION) begin
          next_walk.is_done   <= 1'b0;
          next_walk.is_active <= next_at <= MAX_AT;
        end
      end
    end

    if (rst) begin
      beat_at[0].valid <= 1'b0;
      beat_at[1].valid <= 1'b0;
      next_beat.valid  <= 1'b0;
    end
  end
endmodule

`default_nettype wire
