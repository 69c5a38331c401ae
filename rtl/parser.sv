// SPDX-License-Identifier: Apache-2.0
// From a frame's first byte to its TCP options: Ethernet, two VLAN tags, IPv4 with options, IPv6
// with four extension headers, TCP.
//
// Verdicts are those of bpf/parse.h and bpf/options.h without tunnels: what is not understood
// passes, with a reason (PASS_*). On a wire there are no super-packets, so an IPv4 length of 0 is
// malformed. The parser watches a stream. The stream walks through one stage for each header, and
// each stage learns from the one before where its header begins, before that word arrives: so no
// header has to be understood in the clock in which the next one begins.
// Latency after the last word: 2 clocks for the addresses, 7 for the IP header, 38 for the rest; one
// word per clock.
`default_nettype none

module parser
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned WIDTH = 64
) (
    input  wire logic                clk,
    input  wire logic                rst,
    input  wire logic  [  WIDTH-1:0] tdata,
    input  wire logic  [WIDTH/8-1:0] tkeep,         // without holes
    input  wire logic                tlast,
    input  wire logic                transfer,      // tvalid and tready
    output addresses_t               addresses,
    output ip_t                      ip,
    output logic                     header_valid,
    output header_t                  header
);
  if (WIDTH < 64 || WIDTH > 512 || (WIDTH & (WIDTH - 1)) != 0) begin : g_bad_width
    $fatal(1, "WIDTH must be 64, 128, 256 or 512");
  end

  localparam int unsigned LANES = WIDTH / 16;
  localparam int unsigned EXTENSIONS = 4;
  localparam logic [10:0] MAX_AT = 11'd512;  // headers begin within 1024 bytes, as in parse.h
  // Clocks after the last word: the words rest in a register, IP is known, then the extension
  // headers, then the segment; then what the options take.
  localparam int unsigned NETWORK_CLOCKS = 6, EXTENSION_CLOCKS = 3, SEGMENT_CLOCKS = 4;
  localparam int unsigned OPTIONS_CLOCKS = 14;
  localparam int unsigned SEGMENT_AT = 1 + NETWORK_CLOCKS + EXTENSIONS * EXTENSION_CLOCKS +
      SEGMENT_CLOCKS;

  if (1 + NETWORK_CLOCKS != IP_CLOCKS ||
      SEGMENT_AT + OPTIONS_CLOCKS + 1 != HEADER_CLOCKS) begin : g_bad_latency
    $fatal(1, "types_pkg has another latency of the parser than its stages");
  end

  // 1: words in host order, and how many bytes there are.
  logic [LANES-1:0][15:0] words;
  logic [LANES-1:0] has;  // whole words; half a word, a frame's last byte, completes no header
  beat_t beat;
  logic is_first;
  logic [6:0] tail, new_bytes;

  always_comb begin
    tail = '0;
    for (int unsigned i = 0; i < WIDTH / 8; i++)
    if (tkeep[i] && (i == WIDTH / 8 - 1 || !tkeep[i+1])) tail = tail | 7'(i + 1);
  end

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < LANES; i++) begin
      words[i] <= {tdata[16*i+:8], tdata[16*i+8+:8]};
      has[i]   <= tkeep[2*i+1];
    end
    new_bytes  <= tail;
    beat.valid <= transfer && !rst;
    beat.first <= is_first;
    beat.last  <= tlast;
    if (transfer) begin
      is_first   <= tlast;
      beat.index <= is_first ? '0 : beat.index + {8'b0, beat.index != '1};
    end
    if (rst) is_first <= 1'b1;
  end

  // 2: the addresses, and the bytes so far.
  logic [5:0][15:0] address_words;  // the first one highest
  logic [15:0] bytes;
  logic [16:0] sum;
  assign addresses = address_words;
  assign sum = {1'b0, beat.first ? 16'd0 : bytes} + {10'b0, new_bytes};

  always_ff @(posedge clk) begin
    if (beat.valid) begin
      bytes <= sum[16] ? '1 : sum[15:0];
      for (int unsigned i = 0; i < 6; i++)
      if (32'(beat.index) == i / LANES) address_words[5-i] <= words[i%LANES];
    end
  end

  // The headers, one after the other.
  logic [EXTENSIONS:0][LANES-1:0][15:0] words_at;
  logic [EXTENSIONS:0][LANES-1:0] has_at;
  beat_t [EXTENSIONS:0] beat_at;
  walk_t [EXTENSIONS:0] walk_at;
  logic [17:0] ip_end;

  parser_network #(
      .LANES(LANES)
  ) network (
      .clk,
      .rst,
      .words,
      .has,
      .beat,
      .next_words(words_at[0]),
      .next_has  (has_at[0]),
      .next_beat (beat_at[0]),
      .next_walk (walk_at[0]),
      .ip,
      .ip_end
  );

  for (genvar i = 0; i < EXTENSIONS; i++) begin : g_extension
    parser_extension #(
        .LANES  (LANES),
        .IS_LAST(i == EXTENSIONS - 1)
    ) extension (
        .clk,
        .rst,
        .words(words_at[i]),
        .has(has_at[i]),
        .beat(beat_at[i]),
        .walk(walk_at[i]),
        .next_words(words_at[i+1]),
        .next_has(has_at[i+1]),
        .next_beat(beat_at[i+1]),
        .next_walk(walk_at[i+1])
    );
  end

  logic ended, has_segment;
  walk_t walk;
  logic [15:0] source_port, destination_port, offset_flags, window, checksum;
  logic [39:0][7:0] options;

  parser_segment #(
      .LANES(LANES)
  ) segment_header (
      .clk,
      .rst,
      .words(words_at[EXTENSIONS]),
      .has(has_at[EXTENSIONS]),
      .beat(beat_at[EXTENSIONS]),
      .walk(walk_at[EXTENSIONS]),
      .ended,
      .has_segment,
      .last_walk(walk),
      .source_port,
      .destination_port,
      .offset_flags,
      .window,
      .checksum,
      .options
  );

  // What was found earlier waits for the segment.
  logic [15:0] bytes_soon, bytes_now;
  logic [17:0] ip_end_now;
  logic is_ip_now, has_options;

  delay #(
      .BITS  (16),
      .CLOCKS(SEGMENT_AT - 3)
  ) bytes_of (
      .clk,
      .value  (bytes),
      .delayed(bytes_soon)
  );
  always_ff @(posedge clk) begin
    bytes_now   <= bytes_soon;
    // A segment with options has that many bytes; shorter ones may follow too closely.
    has_options <= bytes_soon >= 16'd58;
  end

  delay #(
      .BITS  (19),
      .CLOCKS(SEGMENT_AT - IP_CLOCKS)
  ) ip_of (
      .clk,
      .value  ({ip.is_ip, ip_end}),
      .delayed({is_ip_now, ip_end_now})
  );

  // The verdict, while the options are read: 1: lengths. 2: what contradicts itself. 3: the reason.
  logic ended_1, ended_2, ended_3;
  walk_t walk_1, walk_2;
  logic signed [18:0] left_1, payload_2;  // bytes of the IP payload; below 0: the header is longer
  logic [5:0] header_bytes_1;
  logic has_segment_1, has_segment_2, is_short_1, is_near_1, is_cut_1, is_cut_2, is_overrun_2;
  logic is_malformed_2;
  logic [3:0] reason_3, reason_now;
  logic [15:0] payload_3, payload_now, bytes_1, bytes_2, bytes_3, bytes_then;
  logic [9:0] tcp_at_3, tcp_at_now;
  logic [79:0] segment_now;

  always_ff @(posedge clk) begin
    ended_1 <= ended && !rst;
    walk_1 <= walk;
    has_segment_1 <= has_segment;
    header_bytes_1 <= {offset_flags[15:12], 2'b0};
    is_short_1 <= offset_flags[15:12] < 4'd5;
    is_near_1 <= walk.at <= MAX_AT;
    left_1 <= $signed({1'b0, ip_end_now}) - $signed({7'b0, walk.at, 1'b0});
    is_cut_1 <= is_ip_now && ip_end_now > {2'b0, bytes_now};
    bytes_1 <= bytes_now;

    ended_2 <= ended_1 && !rst;
    walk_2 <= walk_1;
    has_segment_2 <= has_segment_1 && is_near_1;
    payload_2 <= left_1 - $signed({13'b0, header_bytes_1});
    is_overrun_2 <= left_1[18];
    is_malformed_2 <= is_short_1;
    is_cut_2 <= is_cut_1;
    bytes_2 <= bytes_1;

    ended_3 <= ended_2 && !rst;
    payload_3 <= payload_2[15:0];
    tcp_at_3 <= walk_2.at[9:0];
    bytes_3 <= bytes_2;
    reason_3 <= PASS_TRUNCATED;
    if (!is_cut_2) begin
      if (walk_2.is_done) reason_3 <= walk_2.reason;
      else if (walk_2.is_active && walk_2.is_tcp && is_overrun_2) reason_3 <= PASS_MALFORMED;
      else if (walk_2.is_active && walk_2.is_tcp && has_segment_2)
        reason_3 <= is_malformed_2 || payload_2[18] ? PASS_MALFORMED : PASS_NONE;
    end
  end

  delay #(
      .BITS  (46),
      .CLOCKS(OPTIONS_CLOCKS - 3)
  ) verdict_of (
      .clk,
      .value  ({reason_3, payload_3, bytes_3, tcp_at_3}),
      .delayed({reason_now, payload_now, bytes_then, tcp_at_now})
  );

  delay #(
      .BITS  (80),
      .CLOCKS(OPTIONS_CLOCKS)
  ) segment_of (
      .clk,
      .value  ({source_port, destination_port, offset_flags, window, checksum}),
      .delayed(segment_now)
  );

  logic has_scale;
  logic [7:0] scale;
  logic [5:0] scale_place;
  logic is_authenticated;

  parser_options #(
      .WIDTH (WIDTH),
      .CLOCKS(OPTIONS_CLOCKS)
  ) segment_options (
      .clk,
      .start (ended && has_options),
      .offset(offset_flags[15:12]),
      .options,
      .has_scale,
      .scale,
      .scale_place,
      .is_authenticated
  );

  logic [OPTIONS_CLOCKS-4:0] ended_pipe;
  always_ff @(posedge clk) ended_pipe <= rst ? '0 : {ended_pipe[OPTIONS_CLOCKS-5:0], ended_3};

  always_ff @(posedge clk) begin
    header_valid <= ended_pipe[OPTIONS_CLOCKS-4] && !rst;
    header.bytes <= bytes_then;
    header.reason <= reason_now;
    header.tcp_at <= tcp_at_now;
    {header.source_port, header.destination_port, header.offset_flags, header.window,
     header.checksum} <= segment_now;
    header.payload <= payload_now;
    header.has_scale <= has_scale;
    header.scale <= scale;
    header.scale_at <= {1'b0, scale_place} + 7'd20;
    header.is_authenticated <= is_authenticated;
  end
endmodule

`default_nettype wire
