// SPDX-License-Identifier: Apache-2.0
// A port's input: each frame is stored, parsed, and leaves with its headers rewritten.
//
// Frames that are bad, shorter than 32 bytes, longer than MAX_BYTES or without room are dropped whole and counted by
// `lost`; the input never waits. Latency: 23 clocks from a frame's last word to its first word out
// (1 parser, 17 window, 3 queue of frames, 1 to start, 1 patch), then one word per clock.
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
    output logic arrived,  // a frame was kept; its header:
    output header_t arrived_header,
    output logic acked,
    output logic rewritten,
    output logic was_floored,
    output logic lost
);
  localparam int unsigned LATENCY = 17;
  localparam logic [15:0] MIN_BYTES = 16'd32;  // no MAC passes a shorter frame
  localparam int unsigned WORDS = STORE_BYTES / (WIDTH / 8);
  localparam int unsigned FRAMES = STORE_BYTES / 64;

  logic header_valid;
  logic [WIDTH-1:0] tdata;
  logic [WIDTH/8-1:0] tkeep;
  logic tlast, tvalid, tready, is_open;
  header_t parsed;

  parser #(
      .WIDTH    (WIDTH),
      .MAX_BYTES(MAX_BYTES)
  ) headers (
      .clk,
      .rst,
      .tdata(s_tdata),
      .tkeep(s_tkeep),
      .tlast(s_tlast),
      .tuser(s_tuser),
      .transfer(s_tvalid),
      .header_valid,
      .header(parsed)
  );

  // The frame's length counts here too: whether it is too long is known with its last word.
  logic [15:0] bytes, now_bytes;
  always_comb begin
    now_bytes = bytes;
    for (int unsigned i = 0; i < WIDTH / 8; i++)
    if (s_tkeep[i] && now_bytes != '1) now_bytes = now_bytes + 16'd1;
  end
  always_ff @(posedge clk) begin
    if (s_tvalid) bytes <= s_tlast ? '0 : now_bytes;
    if (rst) bytes <= '0;
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
      .is_bad(s_tuser || now_bytes < MIN_BYTES || now_bytes > MAX_BYTES[15:0]),
      .kept(arrived),
      .lost,
      .m_tdata(tdata),
      .m_tkeep(tkeep),
      .m_tlast(tlast),
      .m_tvalid(tvalid),
      .m_tready(tready && is_open)
  );
  assign arrived_header = parsed;

  // Headers walk with their question; those of lost frames are dropped at the end.
  logic [LATENCY-1:0] valid_pipe;
  frame_t frame;
  frame_t [LATENCY-1:0] frame_pipe;
  patch_t [4:0] patches;
  logic is_ack, is_rewritten, is_floored;

  always_ff @(posedge clk) begin
    valid_pipe <= rst ? '0 : {valid_pipe[LATENCY-2:0], arrived};
    frame_pipe <= {frame_pipe[LATENCY-2:0], frame};
  end
  assign frame = {
    parsed.bytes,
    parsed.reason == PASS_NONE,
    parsed.is_ip,
    parsed.is_v6,
    parsed.ip_at,
    parsed.ip_word,
    parsed.ip_checksum,
    parsed.source,
    parsed.destination,
    parsed.source_port,
    parsed.destination_port,
    parsed.offset_flags[7:0],
    parsed.payload
  };

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
        .is_ack,
        .is_rewritten,
        .is_floored
    );
  end else begin : g_no_rewriter
    assign {window, scale, kind, patches, is_ack, is_rewritten, is_floored} = '0;
  end
  assign acked = valid_pipe[LATENCY-1] && is_ack;
  assign rewritten = valid_pipe[LATENCY-1] && is_rewritten;
  assign was_floored = valid_pipe[LATENCY-1] && is_floored;

  // Waiting frames, and the one that is leaving.
  patch_t [4:0] next_patches;
  patch_t [4:0] held_patches;
  patch_t [1:0] held_more, more;
  logic ends, starts, is_new;
  localparam int unsigned WAITING_BITS = $bits(frame_t) + (REWRITES ? $bits(patches) : 0);
  logic [WAITING_BITS-1:0] pushed, popped;

  ring #(
      .BITS (WAITING_BITS),
      .WORDS(FRAMES)
  ) waiting (
      .clk,
      .rst,
      .push (valid_pipe[LATENCY-1]),
      .value(pushed),
      .valid(m_frame_valid),
      .head (popped),
      .pop  (starts)
  );
  if (REWRITES) begin : g_patches
    assign pushed = {patches, frame_pipe[LATENCY-1]};
    assign {next_patches, m_frame} = popped;
  end else begin : g_no_patches
    assign pushed = frame_pipe[LATENCY-1];
    assign m_frame = popped;
    assign next_patches = '0;
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
