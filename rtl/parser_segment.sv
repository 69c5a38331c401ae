// SPDX-License-Identifier: Apache-2.0
// A stage of the parser: the TCP header. The words are moved so that the header begins in the first
// lane; then each field has a fixed place.
//
// Latency: 4 clocks from a frame's last words to `ended`.
`default_nettype none

module parser_segment
  import types_pkg::*;
#(
    parameter int unsigned LANES = 4  // words of 16 bits in a clock
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    input  wire logic  [LANES-1:0][15:0] words,
    input  wire logic  [LANES-1:0]       has,
    input  wire beat_t                   beat,
    input  wire walk_t                   walk,
    output logic                         ended,             // what follows is that of a whole frame
    output logic                         has_segment,       // 20 bytes of a header
    output walk_t                        last_walk,
    output logic       [     15:0]       source_port,
    output logic       [     15:0]       destination_port,
    output logic       [     15:0]       offset_flags,
    output logic       [     15:0]       window,
    output logic       [     15:0]       checksum,
    output logic       [     39:0][ 7:0] options
);
  localparam int unsigned BITS = $clog2(LANES);
  localparam int unsigned OPTIONS_AT = 10;

  // 1: how far the words are behind the header's beginning, in clocks.
  logic [LANES-1:0][15:0] words_1, words_2, words_3;
  logic [LANES-1:0] has_1, has_2, has_3;
  beat_t beat_1, beat_2;
  walk_t walk_1, walk_2, walk_3;
  logic [8:0] number_1, number_2, number_3;
  logic is_segment_1, is_segment_2, is_segment_3;

  // 2: words that wait for those behind them, or left alone at the end. 3: both, moved.
  logic moves, is_valid_3, is_last_3, is_new_4;
  logic [2*LANES-1:0][15:0] pair;
  logic [2*LANES-1:0] has_pair;
  logic [BITS-1:0] lane_2;
  assign moves = beat_2.valid && (beat_2.last || beat_1.valid);
  assign lane_2 = walk_2.at[BITS-1:0];
  assign pair = {words_1, words_2};
  assign has_pair = {beat_2.last ? '0 : has_1, has_2};

  always_ff @(posedge clk) begin
    words_1 <= words;
    has_1 <= has;
    beat_1 <= beat;
    walk_1 <= walk;
    number_1 <= beat.index - 9'(walk.at >> BITS);
    is_segment_1 <= walk.is_active && walk.is_tcp && beat.index >= 9'(walk.at >> BITS);

    if (moves) beat_2.valid <= 1'b0;
    if (beat_1.valid) begin
      words_2 <= words_1;
      has_2 <= has_1;
      beat_2 <= beat_1;
      walk_2 <= walk_1;
      number_2 <= number_1;
      is_segment_2 <= is_segment_1;
    end

    is_valid_3 <= moves;
    is_last_3  <= beat_2.last;
    for (int unsigned i = 0; i < LANES; i++) begin
      words_3[i] <= pair[32'(lane_2)+i];
      has_3[i]   <= has_pair[32'(lane_2)+i];
    end
    walk_3 <= walk_2;
    number_3 <= number_2;
    is_segment_3 <= is_segment_2;

    // 4: the fields.
    ended <= is_valid_3 && is_last_3;
    if (is_valid_3) begin
      last_walk <= walk_3;
      is_new_4  <= is_last_3;
      if (is_segment_3 && number_3 == 9'(9 / LANES)) has_segment <= has_3[9%LANES];
      else if (is_new_4) has_segment <= 1'b0;
    end
    if (is_valid_3 && is_segment_3) begin
      if (number_3 == 9'(0 / LANES)) source_port <= words_3[0];
      if (number_3 == 9'(1 / LANES)) destination_port <= words_3[1%LANES];
      if (number_3 == 9'(6 / LANES)) offset_flags <= words_3[6%LANES];
      if (number_3 == 9'(7 / LANES)) window <= words_3[7%LANES];
      if (number_3 == 9'(8 / LANES)) checksum <= words_3[8%LANES];
      for (int unsigned i = 0; i < 20; i++)
      if (number_3 == 9'((OPTIONS_AT + i) / LANES))
        {options[2*i], options[2*i+1]} <= words_3[(OPTIONS_AT+i)%LANES];
    end
    if (rst) begin
      beat_1.valid <= 1'b0;
      beat_2.valid <= 1'b0;
      is_valid_3 <= 1'b0;
      is_new_4 <= 1'b1;
      ended <= 1'b0;
    end
  end
endmodule

`default_nettype wire
