// SPDX-License-Identifier: Apache-2.0
// A port of the switch: its input with the rewriter, its output queue, and the scheme that watches
// the queue and sets the windows of the ACKs that come in.
`default_nettype none

module port
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned       WIDTH        = 64,
    parameter int unsigned       PORTS        = 4,
    parameter int unsigned       BUFFER_BYTES = DEFAULT_BUFFER_BYTES,
    parameter int unsigned       STORE_BYTES  = 32768,
    parameter logic        [3:0] SCHEMES      = '1
) (
    input  wire logic                                   clk,
    input  wire logic                                   rst,
    input  wire logic   [            31:0]              seed,          // of HCF's hashes
    input  wire logic   [            63:0]              now_ns,
    input  wire logic   [32*REGISTERS-1:0]              values,
    input  wire logic                                   prepare,
    output logic        [    COUNTERS-1:0][       15:0] counts,
    // The line.
    input  wire logic   [       WIDTH-1:0]              rx_tdata,
    input  wire logic   [     WIDTH/8-1:0]              rx_tkeep,
    input  wire logic                                   rx_tlast,
    input  wire logic                                   rx_tuser,
    input  wire logic                                   rx_tvalid,
    output logic        [       WIDTH-1:0]              tx_tdata,
    output logic        [     WIDTH/8-1:0]              tx_tkeep,
    output logic                                        tx_tlast,
    output logic                                        tx_tvalid,
    input  wire logic                                   tx_tready,
    // Where frames go: asked when they are kept, answered 5 clocks later.
    output logic                                        was_kept,
    output addresses_t                                  addresses,
    input  wire logic   [       PORTS-1:0]              outputs,
    // This input's next frame, and its words.
    output logic        [       PORTS-1:0]              request,
    output frame_t                                      frame,
    input  wire logic   [       PORTS-1:0]              granted,
    input  wire logic   [       PORTS-1:0][       31:0] queues,        // of all outputs, bytes
    input  wire logic   [       PORTS-1:0][       31:0] thresholds,    // of ECN
    output logic        [       WIDTH-1:0]              words_tdata,
    output logic        [     WIDTH/8-1:0]              words_tkeep,
    output logic                                        words_tlast,
    output logic        [       PORTS-1:0]              words_tvalid,  // for these outputs
    output logic                                        words_marked,  // of a frame with CE
    // All inputs' frames for this output.
    input  wire logic   [       PORTS-1:0]              in_request,
    input  wire frame_t [       PORTS-1:0]              in_frames,
    output logic        [       PORTS-1:0]              in_granted,
    input  wire logic   [       PORTS-1:0][  WIDTH-1:0] in_tdata,
    input  wire logic   [       PORTS-1:0][WIDTH/8-1:0] in_tkeep,
    input  wire logic   [       PORTS-1:0]              in_tlast,
    input  wire logic   [       PORTS-1:0]              in_tvalid,
    input  wire logic   [       PORTS-1:0]              in_marked,
    output logic        [            31:0]              queue_bytes
);
  localparam int unsigned FIRST = REGISTERS - COUNTERS;
  localparam bit HAS_WINDOWS = SCHEMES[SCHEME_FAIRQ] || SCHEMES[SCHEME_HSCC];
  port_params_t port_p;
  hcf_params_t hcf_p;
  window_params_t window_p;
  assign port_p = port_params(values);
  assign hcf_p = hcf_params(values);
  assign window_p = window_params(values);

  // The scheme.
  logic [15:0] window, lowered;
  logic [7:0] scale;
  logic [1:0] kind;
  logic changed, floored, drops, is_clamping, is_control;
  logic [31:0] packet_bytes;
  logic [63:0] left_bytes;
  logic departed, dropped, hcf_tick, rewritten, was_floored;
  departure_t departure;

  logic arrived, arrives_tcp;
  header_t arrived_header;
  assign arrives_tcp = arrived && arrived_header.reason == PASS_NONE;

  if (HAS_WINDOWS) begin : g_windows
    port_windows #(
        .SCHEMES(SCHEMES)
    ) windows (
        .clk,
        .rst(prepare),
        .now_ns,
        .values,
        .enters(arrives_tcp),
        .enters_flags(arrived_header.offset_flags[7:0]),
        .enters_data(arrived_header.payload != 0),
        .leaves(departed && departure.is_tcp),
        .departure,
        .left_bytes,
        .queue_bytes,
        .packet_bytes,
        .is_control,
        .drops,
        .is_clamping,
        .window,
        .scale,
        .kind,
        .lowered,
        .changed,
        .floored
    );
  end else begin : g_no_windows
    assign {drops, is_clamping, lowered, changed, floored} = '0;
  end

  // The input: a frame starts once every output that it goes to has decided.
  logic frame_valid, start, started, goes_valid;
  logic [PORTS-1:0] goes, decided, current;
  logic   [4:0] kept_pipe;
  patch_t [1:0] mark_patches;
  logic words_valid, from_ingress_tlast, marks;
  logic [  WIDTH-1:0] from_ingress_tdata;
  logic [WIDTH/8-1:0] from_ingress_tkeep;
  logic [15:0] marked_word, marked_checksum;
  logic [31:0] ahead_bytes, threshold;

  always_ff @(posedge clk) kept_pipe <= rst ? '0 : {kept_pipe[3:0], was_kept};

  ring #(
      .BITS (PORTS),
      .WORDS(STORE_BYTES / 64)
  ) destinations (
      .clk,
      .rst,
      .push (kept_pipe[4]),
      .value(outputs),
      .valid(goes_valid),
      .head (goes),
      .pop  (started)
  );

  assign request = frame_valid ? goes & ~decided : '0;
  // At 512 bits a frame may be one word, and has to start in the clock in which it is granted.
  assign start   = frame_valid && (WIDTH < 512 ? goes & ~decided : request & ~granted) == 0;
  always_ff @(posedge clk) begin
    decided <= decided | granted;
    if (started) begin
      decided <= '0;
      current <= goes;
    end
    if (rst) decided <= '0;
  end

  // A mark is for one output only: a copy for another has another queue.
  always_comb begin
    ahead_bytes = '0;
    threshold   = '0;
    for (int unsigned i = 0; i < PORTS; i++)
    if (goes == PORTS'(1) << i) begin
      ahead_bytes = queues[i];
      threshold   = thresholds[i];
    end
  end

  logic [9:0] ip_at;
  logic frame_is_v6;
  if (HAS_WINDOWS) begin : g_mark
    always_ff @(posedge clk) {frame_is_v6, ip_at} <= {frame.ip.is_v6, frame.ip.ip_at};
    ecn_mark mark (
        .clk,
        .queue_bytes(ahead_bytes),
        .threshold_bytes(threshold),
        .is_ip(frame.ip.is_ip),
        .is_v6(frame.ip.is_v6),
        .first_word(frame.ip.ip_word),
        .checksum(frame.ip.ip_checksum),
        .marks,
        .marked_word,
        .marked_checksum
    );
  end else begin : g_no_mark
    assign {marks, marked_word, marked_checksum, frame_is_v6, ip_at} = '0;
  end
  assign mark_patches = {
    {marks, ip_at, marked_word, 2'b11},
    {marks && !frame_is_v6, ip_at + 10'd5, marked_checksum, 2'b11}
  };

  ingress #(
      .WIDTH      (WIDTH),
      .STORE_BYTES(STORE_BYTES),
      .REWRITES   (HAS_WINDOWS)
  ) line_in (
      .clk,
      .rst,
      .p(window_p),
      .s_tdata(rx_tdata),
      .s_tkeep(rx_tkeep),
      .s_tlast(rx_tlast),
      .s_tuser(rx_tuser),
      .s_tvalid(rx_tvalid),
      .m_tdata(from_ingress_tdata),
      .m_tkeep(from_ingress_tkeep),
      .m_tlast(from_ingress_tlast),
      .m_tvalid(words_valid),
      .m_tready(1'b1),
      .m_frame(frame),
      .m_frame_valid(frame_valid),
      .m_start(start),
      .m_started(started),
      .m_patches(mark_patches),
      .window,
      .scale,
      .kind,
      .lowered,
      .changed,
      .floored,
      .was_kept,
      .addresses,
      .arrived,
      .arrived_header,
      .rewritten,
      .was_floored
  );

  // The first word leaves `ingress` 3 clocks after `started`, the last one of the frame before that
  // 2 clocks after it, at the latest. Outputs take words 5 clocks after a grant.
  localparam int unsigned WAITS = WIDTH < 512 ? 1 : 2;
  logic [PORTS-1:0] current_1, current_words;
  logic was_started, marked_1, marked_words;
  always_ff @(posedge clk) begin
    {current_words, current_1} <= {current_1, current};
    // Whether a frame gets a mark is known in the clock after its start.
    was_started <= started;
    if (was_started) marked_1 <= marks;
    marked_words <= marked_1;
  end

  delay #(
      .BITS  (WIDTH + WIDTH / 8 + 2),
      .CLOCKS(WAITS)
  ) words_of (
      .clk,
      .value  ({marked_words, from_ingress_tdata, from_ingress_tkeep, from_ingress_tlast}),
      .delayed({words_marked, words_tdata, words_tkeep, words_tlast})
  );

  logic [WAITS-1:0][PORTS-1:0] valid_pipe;
  assign words_tvalid = valid_pipe[WAITS-1];
  always_ff @(posedge clk) begin
    valid_pipe[0] <= words_valid ? current_words : '0;
    for (int unsigned i = 1; i < WAITS; i++) valid_pipe[i] <= valid_pipe[i-1];
    if (rst) valid_pipe <= '0;
  end

  logic [PORTS-1:0] joined, joined_marked;
  output_port #(
      .WIDTH       (WIDTH),
      .INPUTS      (PORTS),
      .BUFFER_BYTES(BUFFER_BYTES),
      .HAS_HCF     (SCHEMES[SCHEME_HCF])
  ) line_out (
      .clk,
      .rst,
      .prepare,
      .wants_hcf(port_p.scheme == SCHEME_HCF),
      .p(hcf_p),
      .seed,
      .tick(hcf_tick),
      .request(in_request),
      .frames(in_frames),
      .granted(in_granted),
      .packet_bytes,
      .is_control,
      .drops,
      .s_tdata(in_tdata),
      .s_tkeep(in_tkeep),
      .s_tlast(in_tlast),
      .s_tvalid(in_tvalid),
      .m_tdata(tx_tdata),
      .m_tkeep(tx_tkeep),
      .m_tlast(tx_tlast),
      .m_tvalid(tx_tvalid),
      .m_tready(tx_tready),
      .queue_bytes,
      .departed,
      .departure,
      .joined,
      .dropped,
      .lost()
  );

  // A mark counts once its frame has joined the queue: what is in there leaves. Several inputs may
  // end a frame in the same clock.
  logic [15:0] marks_joined;
  always_comb begin
    marks_joined = '0;
    for (int unsigned i = 0; i < PORTS; i++)
    marks_joined = marks_joined + {15'b0, joined_marked[i]};
  end

  logic was_clamping;
  logic [63:0] hcf_due_ns;
  assign hcf_tick = now_ns >= hcf_due_ns;
  always_ff @(posedge clk) begin
    if (hcf_tick) hcf_due_ns <= now_ns + {32'b0, hcf_p.every_ns};
    if (departed) left_bytes <= left_bytes + {48'b0, departure.bytes};
    was_clamping  <= is_clamping;
    joined_marked <= joined & in_marked;
    if (rst) begin
      joined_marked <= '0;
      hcf_due_ns <= '0;
      left_bytes <= '0;
    end
  end

  always_comb begin
    counts = '0;
    counts[REG_counter_egress_packets-FIRST] = {15'b0, departed};
    counts[REG_counter_egress_bytes-FIRST] = departed ? departure.bytes : '0;
    counts[REG_counter_ingress_packets-FIRST] = {15'b0, arrived};
    counts[REG_counter_acks-FIRST] = {15'b0, arrived && header_is_ack(arrived_header)};
    counts[REG_counter_acks_rewritten-FIRST] = {15'b0, rewritten};
    counts[REG_counter_acks_floored-FIRST] = {15'b0, was_floored};
    counts[REG_counter_ecn_marks-FIRST] = marks_joined;
    counts[REG_counter_syns-FIRST] = {15'b0, arrived && header_is_syn(arrived_header)} +
        {15'b0, departed && departure.is_tcp && (departure.flags & TCP_FLAG_SYN[7:0]) != 0};
    counts[REG_counter_zero_windows-FIRST] = {
      15'b0, arrived && header_is_zero_window(arrived_header, window_p.wscale_source)
    };
    counts[REG_counter_clamps-FIRST] = {15'b0, is_clamping && !was_clamping};
    counts[REG_counter_data_dropped-FIRST] = {15'b0, dropped};
  end
endmodule

`default_nettype wire
