// SPDX-License-Identifier: Apache-2.0
// A port's input: each frame is stored, parsed, and leaves with its headers rewritten.
//
// Frames that are bad, shorter than 32 bytes, longer than MAX_BYTES or without room are dropped whole
// and not counted; the input never waits. Latency: 61 clocks from a frame's last word to its first
// word out (38 parser, 17 window, 3 queue of frames, 1 to start, 2 patches; without REWRITES no
// window), then one word per clock.
`default_nettype none

module ingress
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned WIDTH       = 64,
    parameter int unsigned MAX_BYTES   = 9018,
    parameter int unsigned STORE_BYTES = 32768,  // a power of two; at least two frames
    parameter bit          REWRITES    = 1       // without: no window or scale is changed
) (
    input wire logic clk,
    input wire logic rst,
    input wire window_params_t p,
    input wire logic [WIDTH-1:0] s_tdata,
    input wire logic [WIDTH/8-1:0] s_tkeep,
    input wire logic s_tlast,
    input wire logic s_tuser,  // at s_tlast: the frame is bad
    input wire logic s_tvalid,
    output logic [WIDTH-1:0] m_tdata,
    output logic [WIDTH/8-1:0] m_tkeep,
    output logic m_tlast,
    output logic m_tvalid,
    input wire logic m_tready,
    // The frame at the output: from before its first word to its last.
    output frame_t m_frame,
    output logic m_frame_valid,
    input wire logic m_start,  // the frame at m_frame may leave
    output logic m_started,
    input wire patch_t [1:0] m_patches,  // such as an ECN mark; a clock after m_started
    // The question to the scheme, and its answer 14 clocks later.
    output logic [15:0] window,
    output logic [7:0] scale,
    output logic [1:0] kind,
    input wire logic [15:0] lowered,
    input wire logic changed,
    input wire logic floored,
    // Events, for counting.
    output logic was_kept,  // a frame, with these addresses
    output addresses_t addresses,
    output logic arrived,  // its header
    output header_t arrived_header,
    output logic rewritten,
    output logic was_floored
);
  localparam int unsigned LATENCY = PATCHES_CLOCKS;
  localparam int unsigned MIN_BYTES = 32;  // no MAC passes a shorter frame
  localparam int unsigned WORDS = STORE_BYTES / (WIDTH / 8);
  localparam int unsigned FRAMES = STORE_BYTES / 64;

  logic [  WIDTH-1:0] tdata;
  logic [WIDTH/8-1:0] tkeep;
  logic tlast, tvalid, tready, is_open;
  header_t parsed;
  logic has_parsed;
  ip_t ip;

  parser #(
      .WIDTH(WIDTH)
  ) headers (
      .clk,
      .rst,
      .tdata(s_tdata),
      .tkeep(s_tkeep),
      .tlast(s_tlast),
      .transfer(s_tvalid),
      .addresses,
      .ip,
      .header_valid(has_parsed),
      .header(parsed)
  );

  // Whether it is too long or too short is known with the frame's last word.
  localparam int unsigned WORD_BYTES = WIDTH / 8;
  localparam logic [15:0] LONGEST = 16'(MAX_BYTES / WORD_BYTES);  // whole words
  localparam logic [15:0] SHORTEST = 16'((MIN_BYTES - 1) / WORD_BYTES);
  logic [15:0] whole_words;  // before this one, saturating
  logic is_at_longest, is_beyond, is_at_shortest, is_enough, is_bad, kept;
  assign is_bad = s_tuser || is_beyond || (is_at_longest && s_tkeep[MAX_BYTES%WORD_BYTES]) ||
      !(is_enough || (is_at_shortest && s_tkeep[(MIN_BYTES-1)%WORD_BYTES]));
  always_ff @(posedge clk) begin
    if (s_tvalid) begin
      whole_words <= whole_words + {15'b0, whole_words != '1};
      is_at_longest <= whole_words == LONGEST - 16'd1;
      is_beyond <= is_beyond || is_at_longest;
      is_at_shortest <= whole_words == SHORTEST - 16'd1;
      is_enough <= is_enough || is_at_shortest;
    end
    if (rst || (s_tvalid && s_tlast)) begin
      whole_words <= '0;
      is_at_longest <= LONGEST == 0;
      is_beyond <= 1'b0;
      is_at_shortest <= SHORTEST == 0;
      is_enough <= 1'b0;
    end
  end

  frame_store #(
      .WIDTH (WIDTH),
      .WORDS (WORDS),
      .FRAMES(FRAMES)
  ) store (
      .clk,
      .rst,
      .s_tdata,
      .s_tkeep,
      .s_tlast,
      .s_tvalid,
      .is_bad,
      .kept,
      .lost(),
      .m_tdata(tdata),
      .m_tkeep(tkeep),
      .m_tlast(tlast),
      .m_tvalid(tvalid),
      .m_tready(tready && is_open)
  );

  // Whether a frame was kept is known long before its header.
  logic [HEADER_CLOCKS-2:0] kept_pipe;
  always_ff @(posedge clk) kept_pipe <= rst ? '0 : {kept_pipe[HEADER_CLOCKS-3:0], kept};
  assign was_kept = kept_pipe[ADDRESSES_CLOCKS-2];
  assign arrived = kept_pipe[HEADER_CLOCKS-2] && has_parsed;
  assign arrived_header = parsed;

  // What is known of a frame waits in three queues, each filled when it is known; with the patches a
  // frame is complete.
  logic has_ip, has_patches, has_frame, ends, starts, is_new;
  logic [LATENCY-1:0] valid_pipe;
  patch_t [4:0] patches;
  logic is_rewritten, is_floored;
  always_ff @(posedge clk) valid_pipe <= rst ? '0 : {valid_pipe[LATENCY-2:0], arrived};

  ring #(
      .BITS ($bits(ip_t)),
      .WORDS(FRAMES)
  ) waiting_ip (
      .clk,
      .rst,
      .push (kept_pipe[IP_CLOCKS-2]),
      .value(ip),
      .valid(has_ip),
      .head (m_frame.ip),
      .pop  (starts)
  );

  ring #(
      .BITS ($bits(frame_t) - $bits(ip_t)),
      .WORDS(FRAMES)
  ) waiting (
      .clk,
      .rst,
      .push(arrived),
      .value({
        parsed.bytes,
        parsed.reason == PASS_NONE,
        parsed.offset_flags[7:0],
        parsed.payload,
        parsed.source_port,
        parsed.destination_port
      }),
      .valid(has_frame),
      .head({
        m_frame.bytes,
        m_frame.is_tcp,
        m_frame.flags,
        m_frame.payload,
        m_frame.source_port,
        m_frame.destination_port
      }),
      .pop(starts)
  );
  assign m_frame_valid = has_ip && has_frame && (!REWRITES || has_patches);

  if (REWRITES) begin : g_rewriter
    window_rewriter rewriter (
        .clk,
        .header(parsed),
        .p,
        .window,
        .scale,
        .kind,
        .lowered,
        .changed,
        .floored,
        .patches,
        .is_rewritten,
        .is_floored
    );
  end else begin : g_no_rewriter
    assign {window, scale, kind, patches, is_rewritten, is_floored} = '0;
  end
  assign rewritten   = valid_pipe[LATENCY-1] && is_rewritten;
  assign was_floored = valid_pipe[LATENCY-1] && is_floored;

  // The frame that is leaving.
  patch_t [4:0] next_patches;
  patch_t [4:0] held_patches;
  patch_t [1:0] held_more, more;
  if (REWRITES) begin : g_patches
    ring #(
        .BITS ($bits(patches)),
        .WORDS(FRAMES)
    ) waiting_patches (
        .clk,
        .rst,
        .push (valid_pipe[LATENCY-1]),
        .value(patches),
        .valid(has_patches),
        .head (next_patches),
        .pop  (starts)
    );
  end else begin : g_no_patches
    assign {has_patches, next_patches} = '0;
  end
  assign ends = is_open && tvalid && tready && tlast;
  assign m_started = starts;
  assign starts = m_frame_valid && m_start && (!is_open || ends);
  assign more = is_new ? m_patches : held_more;

  always_ff @(posedge clk) begin
    is_new <= starts;
    if (is_new) held_more <= m_patches;
    if (ends) is_open <= 1'b0;
    if (starts) begin
      is_open <= 1'b1;
      held_patches <= next_patches;
    end
    if (rst) is_open <= 1'b0;
  end

  frame_patch #(
      .WIDTH  (WIDTH),
      .PATCHES(7)
  ) patch (
      .clk,
      .rst,
      .patches ({more, held_patches}),
      .s_tdata (tdata),
      .s_tkeep (tkeep),
      .s_tlast (tlast),
      .s_tvalid(tvalid && is_open),
      .s_tready(tready),
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_tvalid,
      .m_tready
  );
endmodule

`default_nettype wire
