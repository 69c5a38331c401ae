// SPDX-License-Identifier: Apache-2.0
// A stage of the parser: Ethernet's type behind up to two VLAN tags, and the IP header behind it.
//
// Latency: 6 clocks. What is known of a frame is that of its words so far.
`default_nettype none

module parser_network
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned LANES = 4  // words of 16 bits in a clock
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    input  wire logic  [LANES-1:0][15:0] words,
    input  wire logic  [LANES-1:0]       has,
    input  wire beat_t                   beat,
    output logic       [LANES-1:0][15:0] next_words,
    output logic       [LANES-1:0]       next_has,
    output beat_t                        next_beat,
    output walk_t                        next_walk,
    output ip_t                          ip,
    output logic       [     17:0]       ip_end       // bytes from the frame's start
);
  localparam logic [15:0] VLAN = 16'h8100, PROVIDER_VLAN = 16'h88a8, IPV4 = 16'h0800;
  localparam logic [15:0] IPV6 = 16'h86dd;
  localparam logic [7:0] HOP = 8'd0, TCP = 8'd6, ROUTING = 8'd43, FRAGMENT = 8'd44;
  localparam logic [7:0] DESTINATION = 8'd60;
  localparam int unsigned TYPE_AT = 6;  // words before the type, without tags; a tag has two
  localparam int unsigned CLOCKS = 6;

  // The stream walks through: number i is i clocks old.
  logic [CLOCKS:1][LANES-1:0][15:0] words_at;
  logic [CLOCKS:1][LANES-1:0] has_at;
  beat_t [CLOCKS:1] beat_at;
  always_ff @(posedge clk) begin
    words_at <= {words_at[CLOCKS-1:1], words};
    has_at   <= {has_at[CLOCKS-1:1], has};
    beat_at  <= {beat_at[CLOCKS-1:1], beat};
    if (rst) for (int unsigned i = 1; i <= CLOCKS; i++) beat_at[i].valid <= 1'b0;
  end
  assign next_words = words_at[CLOCKS];
  assign next_has   = has_at[CLOCKS];
  assign next_beat  = beat_at[CLOCKS];

  // 1: what could be the type.
  typedef struct packed {
    logic has;
    logic is_tag;
    logic is_v4;
    logic is_v6;
  } type_t;
  type_t [2:0] type_1;

  always_ff @(posedge clk)
    for (int unsigned i = 0; i < 3; i++)
      if (beat.valid) begin
        if (32'(beat.index) == (TYPE_AT + 2 * i) / LANES)
          type_1[i] <= {
            has[(TYPE_AT+2*i)%LANES],
            words[(TYPE_AT+2*i)%LANES] == VLAN || words[(TYPE_AT+2*i)%LANES] == PROVIDER_VLAN,
            words[(TYPE_AT+2*i)%LANES] == IPV4,
            words[(TYPE_AT+2*i)%LANES] == IPV6
          };
        else if (beat.first) type_1[i] <= '0;
      end

  // 2: the type.
  type_t type_2;
  logic [1:0] tags_2, tags_3, tags_4, tags_5;
  always_ff @(posedge clk) begin
    tags_2 <= !type_1[0].is_tag ? 2'd0 : !type_1[1].is_tag ? 2'd1 : 2'd2;
    type_2 <= !type_1[0].has || !type_1[0].is_tag ? type_1[0] :
        !type_1[1].has || !type_1[1].is_tag ? type_1[1] : type_1[2];
  end

  // 3: which words are now at hand. The header begins TYPE_AT + 2 * tags + 1 words from the start.
  typedef enum logic [2:0] {
    FIRST,
    LENGTH,
    FRAGMENTS,
    PROTOCOL,
    CHECKSUM,
    LAST
  } field_e;
  function automatic logic [4:0] place_of(input field_e field, input logic v6);
    case (field)
      FIRST: place_of = 5'd0;
      LENGTH: place_of = v6 ? 5'd2 : 5'd1;
      FRAGMENTS: place_of = 5'd3;
      PROTOCOL: place_of = v6 ? 5'd3 : 5'd4;
      CHECKSUM: place_of = 5'd5;
      default: place_of = v6 ? 5'd19 : 5'd9;
    endcase
  endfunction

  logic [5:0] is_here_3;
  logic [LANES-1:0] in_source_3, in_destination_3;
  type_t type_3, type_4, type_5;
  always_ff @(posedge clk) begin
    is_here_3 <= '0;
    in_source_3 <= '0;
    in_destination_3 <= '0;
    for (int unsigned tags = 0; tags < 3; tags++)
    for (int unsigned v6 = 0; v6 < 2; v6++)
    if (tags_2 == tags[1:0] && type_2.has && (v6 != 0 ? type_2.is_v6 : type_2.is_v4) &&
        beat_at[2].valid) begin
      for (int unsigned f = 0; f < 6; f++)
      if (32'(beat_at[2].index) == (TYPE_AT + 2 * tags + 1 + 32'(place_of(
              field_e'(f[2:0]), v6[0]
          ))) / LANES)
        is_here_3[f] <= 1'b1;
      // IPv4: words 6 and 7, then 8 and 9. IPv6: 4 to 11, then 12 to 19.
      for (int unsigned k = v6 != 0 ? 4 : 6; k < (v6 != 0 ? 20 : 10); k++)
      if (32'(beat_at[2].index) == (TYPE_AT + 2 * tags + 1 + k) / LANES) begin
        if (k < (v6 != 0 ? 12 : 8)) in_source_3[(TYPE_AT+2*tags+1+k)%LANES] <= 1'b1;
        else in_destination_3[(TYPE_AT+2*tags+1+k)%LANES] <= 1'b1;
      end
    end
    tags_3 <= tags_2;
    type_3 <= type_2;
  end

  // 4: the fields. A header begins at an odd word, so the first half of an address is in odd lanes.
  logic [4:0][15:0] fields_4;
  logic has_last_4;
  logic [31:0] source_now, destination_now, source_4, destination_4, source_5, destination_5;
  always_comb begin
    source_now = '0;
    destination_now = '0;
    for (int unsigned i = 0; i < LANES; i += 2) begin
      source_now = source_now ^ {
        words_at[3][i+1] & {16{in_source_3[i+1]}}, words_at[3][i] & {16{in_source_3[i]}}
      };
      destination_now = destination_now ^ {
        words_at[3][i+1] & {16{in_destination_3[i+1]}}, words_at[3][i] & {16{in_destination_3[i]}}
      };
    end
  end

  always_ff @(posedge clk) begin
    if (beat_at[3].valid) begin
      has_last_4 <= has_last_4 && !beat_at[3].first;
      source_4 <= (beat_at[3].first ? '0 : source_4) ^ source_now;
      destination_4 <= (beat_at[3].first ? '0 : destination_4) ^ destination_now;
    end
    for (int unsigned tags = 0; tags < 3; tags++)
    for (int unsigned v6 = 0; v6 < 2; v6++)
    if (tags_3 == tags[1:0] && type_3.is_v6 == v6[0])
      for (int unsigned f = 0; f < 6; f++)
      if (is_here_3[f]) begin
        if (f == 32'(LAST))
          has_last_4 <= has_at[3][(TYPE_AT+2*tags+1+32'(place_of(LAST, v6[0])))%LANES];
        else
          fields_4[f] <= words_at[3][(TYPE_AT+2*tags+1+32'(place_of(
              field_e'(f[2:0]), v6[0]
          )))%LANES];
      end
    tags_4 <= tags_3;
    type_4 <= type_3;
  end

  // 5: sums, and what the header is.
  logic has_last_5, is_wrong_5, is_short_5, is_fragment_5;
  logic is_tcp_5, is_routing_5, is_fragments_5, is_extension_5;
  logic [17:0] ip_end_5;
  logic [10:0] at_5;
  logic [15:0] word_5, checksum_5;
  logic [7:0] protocol;
  logic [3:0] start_4, start_5, words_of_header;
  assign start_4 = 4'd7 + {1'b0, tags_4, 1'b0};
  assign words_of_header = fields_4[FIRST][11:8];
  assign protocol = type_4.is_v6 ? fields_4[PROTOCOL][15:8] : fields_4[PROTOCOL][7:0];
  always_ff @(posedge clk) begin
    has_last_5 <= has_last_4;
    is_wrong_5 <= fields_4[FIRST][15:12] != (type_4.is_v6 ? 4'd6 : 4'd4);
    is_short_5 <= !type_4.is_v6 &&
        (words_of_header < 4'd5 || fields_4[LENGTH] < {10'b0, words_of_header, 2'b0});
    is_fragment_5 <= !type_4.is_v6 && fields_4[FRAGMENTS][13:0] != 0;
    is_tcp_5 <= protocol == TCP;
    is_routing_5 <= protocol == ROUTING;
    is_fragments_5 <= protocol == FRAGMENT;
    is_extension_5 <= protocol == HOP || protocol == ROUTING || protocol == DESTINATION;
    ip_end_5 <= {2'b0, fields_4[LENGTH]} + {11'b0, {2'b0, start_4, 1'b0} +
        (type_4.is_v6 ? 7'd40 : 7'd0)};
    at_5 <= {7'b0, start_4} + (type_4.is_v6 ? 11'd20 : {6'b0, words_of_header, 1'b0});
    start_5 <= start_4;
    tags_5 <= tags_4;
    type_5 <= type_4;
    word_5 <= fields_4[FIRST];
    checksum_5 <= fields_4[CHECKSUM];
    source_5 <= source_4;
    destination_5 <= destination_4;
  end

  // 6: what follows.
  always_ff @(posedge clk) begin
    next_walk <= '0;
    next_walk.at <= at_5;
    ip.is_ip <= 1'b0;
    if (type_5.has && type_5.is_tag) begin
      next_walk.is_done <= tags_5 == 2'd2;
      next_walk.reason  <= PASS_TOO_DEEP;
    end else if (type_5.has && !type_5.is_v4 && !type_5.is_v6) begin
      next_walk.is_done <= 1'b1;
      next_walk.reason  <= PASS_NOT_IP;
    end else if (type_5.has && has_last_5) begin
      ip.is_ip <= !is_wrong_5 && !is_short_5;
      next_walk.is_done <= 1'b1;
      next_walk.reason <= PASS_NOT_TCP;
      if (is_wrong_5 || is_short_5) next_walk.reason <= PASS_MALFORMED;
      else if (is_fragment_5 || (type_5.is_v6 && is_fragments_5)) next_walk.reason <= PASS_FRAGMENT;
      else if (is_tcp_5 || (type_5.is_v6 && is_extension_5)) begin
        next_walk.is_done <= 1'b0;
        next_walk.is_active <= 1'b1;
        next_walk.is_tcp <= is_tcp_5;
        next_walk.is_routing <= is_routing_5;
      end
    end
    ip_end <= ip_end_5;
    ip.is_v6 <= type_5.is_v6;
    ip.ip_at <= {6'b0, start_5};
    ip.ip_word <= word_5;
    ip.ip_checksum <= checksum_5;
    ip.source <= source_5;
    ip.destination <= destination_5;
  end
endmodule

`default_nettype wire
