// SPDX-License-Identifier: Apache-2.0
// What changes in a frame's TCP header: the window of an ACK, reserved bits, the scale option.
//
// The rules are those of bpf/rewrite.h and bpf/scale.h for a port without a table of flows: RSTs and
// authenticated segments stay as they are; a SYN's window is not scaled; with `stripped` the scale
// option of a SYN, but not of a SYN-ACK, becomes three NOPs. The scheme answers 14 clocks after the
// question.
// Latency: 17 clocks from a header to its patches, one header per clock.
`default_nettype none

module window_rewriter
  import core_pkg::*, types_pkg::*;
(
    input  wire logic                  clk,
    input  wire header_t               header,
    input  wire window_params_t        p,
    // The question to the scheme, and its answer.
    output logic                [15:0] window,
    output logic                [ 7:0] scale,
    output logic                [ 1:0] kind,
    input  wire logic           [15:0] lowered,
    input  wire logic                  changed,
    input  wire logic                  floored,
    // 17 clocks after the header.
    output patch_t              [ 4:0] patches,
    output logic                       is_rewritten,
    output logic                       is_floored
);
  localparam int unsigned ANSWER = ANSWER_CLOCKS;

  if (PATCHES_CLOCKS != ANSWER + 3) begin : g_bad_latency
    $fatal(1, "patches follow three clocks after the answer");
  end

  typedef struct packed {
    logic        is_ack;        // its window may change
    logic        is_stripped;
    logic        clears;
    logic        carries;       // the window's upper bits are the scale
    logic [9:0]  tcp_at;
    logic [15:0] offset_flags;
    logic [15:0] field;
    logic [15:0] checksum;
    logic [7:0]  option_scale;
    logic [6:0]  scale_at;
  } segment_t;

  segment_t [ANSWER:0] pipe;
  segment_t first, last;
  logic [7:0] flags;
  logic is_open, is_syn;

  assign flags = header.offset_flags[7:0];
  assign is_open = header.reason == PASS_NONE && !header.is_authenticated &&
      (flags & TCP_FLAG_RST[7:0]) == 0;
  assign is_syn = (flags & TCP_FLAG_SYN[7:0]) != 0;

  always_comb begin
    first.is_ack = is_open && (flags & TCP_FLAG_ACK[7:0]) != 0;
    // Of an answer alone only the client would know that it was stripped.
    first.is_stripped = is_open && is_syn && (flags & TCP_FLAG_ACK[7:0]) == 0 &&
        p.wscale_source == WSCALE_STRIPPED && header.has_scale;
    first.clears = is_open && !is_syn && p.wscale_source == WSCALE_RESERVED_BITS &&
        p.clears_bits[0] && header.offset_flags[11:8] != 0;
    first.carries = p.wscale_source == WSCALE_WINDOW_BITS && !is_syn;
    first.tcp_at = header.tcp_at;
    first.offset_flags = header.offset_flags;
    first.field = header.window;
    first.checksum = header.checksum;
    first.option_scale = header.scale;
    first.scale_at = header.scale_at;
  end

  // The question.
  always_ff @(posedge clk) begin
    kind   <= is_syn ? TCP_ACK_SYN[1:0] : TCP_ACK_LATER[1:0];
    window <= first.carries ? {4'b0, header.window[11:0]} : header.window;
    if (is_syn) scale <= '0;
    else
      case (p.wscale_source)
        WSCALE_RESERVED_BITS: scale <= {4'b0, header.offset_flags[11:8]};
        WSCALE_WINDOW_BITS: scale <= {4'b0, header.window[15:12]};
        WSCALE_UNIFIED: scale <= p.network_wscale[7:0];
        default: scale <= '0;  // stripped: no window is scaled
      endcase
    pipe <= {pipe[ANSWER-1:0], first};
  end
  assign last = pipe[ANSWER];

  // Three NOPs for kind, length and scale, as changes of two words: the checksum does not mind
  // which part of a word a change is in. The scale's byte is the first of its word, or the second.
  localparam logic [15:0] KIND_LENGTH = 16'h0303, NOPS = 16'h0101;
  logic is_even;
  logic [15:0] without_first, without_option, next_checksum;
  assign is_even = !pipe[0].scale_at[0];

  tcp_checksum strip_first (
      .clk,
      .checksum(pipe[0].checksum),
      .old_word(is_even ? KIND_LENGTH : KIND_LENGTH & 16'h00ff),
      .new_word(is_even ? NOPS : NOPS & 16'h00ff),
      .updated (without_first)
  );

  tcp_checksum strip_second (
      .clk,
      .checksum(without_first),
      .old_word(pipe[2].scale_at[0] ? {KIND_LENGTH[15:8], pipe[2].option_scale} :
          {pipe[2].option_scale, 8'h00}),
      .new_word(pipe[2].scale_at[0] ? NOPS : NOPS & 16'hff00),
      .updated(without_option)
  );

  // The checksum without the option waits for the window: it is known 4 clocks after the question.
  logic [15:0] stripped_checksum;
  delay #(
      .BITS  (16),
      .CLOCKS(ANSWER - 4)
  ) stripped_of (
      .clk,
      .value  (without_option),
      .delayed(stripped_checksum)
  );

  logic [15:0] base, final_field;
  logic changes;
  assign base = last.is_stripped ? stripped_checksum : last.checksum;
  assign changes = last.is_ack && changed;
  assign final_field = last.carries ?
      {last.field[15:12] > 4'd14 ? 4'd14 : last.field[15:12], lowered[11:0]} : lowered;

  tcp_checksum window_change (
      .clk,
      .checksum(base),
      .old_word(changes ? last.field : 16'h0),
      .new_word(changes ? final_field : 16'h0),
      .updated (next_checksum)
  );

  // The other patches wait for the checksum, which takes 2 clocks.
  typedef struct packed {
    logic       is_rewritten;
    logic       is_floored;
    logic       has_checksum;
    logic [9:0] checksum_at;
    patch_t     window;
    patch_t     flags;
    patch_t     first;
    patch_t     second;
  } written_t;

  written_t written, now_written;
  logic [9:0] scale_word;
  assign scale_word = last.tcp_at + {4'b0, last.scale_at[6:1]};

  always_ff @(posedge clk) begin
    written.is_rewritten <= changes;
    written.is_floored <= changes && floored;
    written.has_checksum <= changes || last.is_stripped;
    written.checksum_at <= last.tcp_at + 10'd8;
    written.window <= {changes, last.tcp_at + 10'd7, final_field, 2'b11};
    written.flags <= {last.clears, last.tcp_at + 10'd6, last.offset_flags & 16'hf0ff, 2'b11};
    written.first <= {last.is_stripped, scale_word - 10'd1, NOPS, !last.scale_at[0], 1'b1};
    written.second <= {last.is_stripped, scale_word, NOPS, 1'b1, last.scale_at[0]};
    now_written <= written;
  end
  assign {is_rewritten, is_floored} = {now_written.is_rewritten, now_written.is_floored};
  assign patches = {
    {now_written.has_checksum, now_written.checksum_at, next_checksum, 2'b11},
    now_written.window,
    now_written.flags,
    now_written.first,
    now_written.second
  };
endmodule

`default_nettype wire
