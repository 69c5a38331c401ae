// SPDX-License-Identifier: Apache-2.0
// HSCC at a port: hysteresis on the queue's length clamps every flow (HSCC §III).
//
// core: hscc_on_queue, hscc_on_ack up to tcp_lower_window, hscc_drops. The time of an answer is
// that of the clock before its question. core divides the time since the release by its interval;
// here the steps are counted as they fall due, one per clock at most, so `release_interval_ns` must
// not be shorter than a clock. Latency: 9 clocks from question to limit and floor, one per clock.
`default_nettype none

module hscc
  import core_pkg::*;
(
    input  wire logic                clk,
    input  wire logic                rst,
    input  wire hscc_params_t        p,
    input  wire logic         [63:0] now_ns,
    // The queue's length, whenever it is known.
    input  wire logic                queue_valid,
    input  wire logic         [31:0] queue_bytes,
    output logic                     is_clamping,
    input  wire logic         [31:0] flows,
    // An ACK.
    input  wire logic         [ 7:0] scale,
    input  wire logic         [15:0] mss_bytes,     // of its flow; 0: not known
    input  wire logic         [ 1:0] kind,          // TCP_ACK_*
    output logic              [31:0] limit,
    output logic              [31:0] floor,
    // A packet that would be queued.
    input  wire logic         [31:0] packet_bytes,
    input  wire logic                is_control,
    output logic                     drops
);
  logic is_clamp  /* verilator public_flat_rd */;  // mode
  logic is_released, is_stale, is_open, is_due;
  logic [63:0] stale_ns;  // when a clamp expires
  // When the next step falls due, and how late that is: modulo 18 minutes, as none is so late.
  logic [39:0] step_due_ns, late_ns;
  logic [20:0] steps;
  logic [51:0] opened;  // bytes that the release has added so far
  logic begins, ends;

  assign begins = queue_valid && queue_bytes >= p.alpha2_bytes;
  assign ends = queue_valid && !begins && queue_bytes <= p.alpha1_bytes && is_clamp;
  assign is_clamping = is_clamp && !is_stale;
  assign late_ns = now_ns[39:0] - step_due_ns;
  assign is_due = !late_ns[39];
  assign is_open = !is_released || p.release_step_bytes == 0 || steps >= HSCC_MAX_STEPS[20:0];

  always_ff @(posedge clk) begin
    is_stale <= 1'b0;
    if (queue_valid) stale_ns <= now_ns + {32'b0, p.expiry_ns};
    else is_stale <= p.expiry_ns != 0 && now_ns >= stale_ns;

    if (is_due && is_released && steps < HSCC_MAX_STEPS[20:0]) begin
      steps <= steps + 21'd1;
      step_due_ns <= step_due_ns + {8'b0, p.release_interval_ns};
      opened <= opened + {20'b0, p.release_step_bytes};
    end
    if (begins) is_clamp <= 1'b1;
    if (ends) begin
      is_clamp <= 1'b0;
      is_released <= 1'b1;
      steps <= '0;
      opened <= '0;
      step_due_ns <= now_ns[39:0] + {8'b0, p.release_interval_ns};
    end
    if (rst) begin
      is_clamp <= 1'b0;
      is_released <= 1'b0;
      stale_ns <= {32'b0, p.expiry_ns};
    end
  end

  // 1: sizes. 2 to 7: the clamp and the first flight. 8: the release. 9: limit and floor.
  typedef struct packed {
    logic        clamps;
    logic        is_open;
    logic        is_first;
    logic [31:0] opened;
  } mode_t;

  mode_t mode_2, mode_6, mode_7;
  logic [ 2:0] flags_1;
  logic [15:0] mss_1;
  logic [ 3:0] shift_1;
  logic [31:0] flows_1, rest_8, first_8;
  logic [51:0] opened_1;
  logic [23:0] clamp_7, flight_7, floor_8;
  logic [31:0] release_7;
  // What it is beyond the largest window, without the clamp and with it; not beyond: below 0.
  logic [32:0] opens_beyond_7, beyond_7;

  assign release_7 = {8'b0, clamp_7} + mode_7.opened;
  assign beyond_7  = {9'b0, clamp_7} + opens_beyond_7;

  always_ff @(posedge clk) begin
    mss_1 <= mss_bytes != 0 ? mss_bytes : p.mss_bytes[15:0];
    shift_1 <= kind == TCP_ACK_SYN[1:0] ? 4'd0 :
        scale > TCP_MAX_SCALE[7:0] ? TCP_MAX_SCALE[3:0] : scale[3:0];
    flows_1 <= flows;
    opened_1 <= opened;
    flags_1 <= {
      is_clamping, is_open || is_clamp, kind != TCP_ACK_LATER[1:0] && p.first_flight_segments != 0
    };

    mode_7 <= mode_6;
    opens_beyond_7 <= {1'b0, mode_6.opened} - {1'b0, TCP_MAX_WINDOW} - 33'd1;

    mode_2 <= {flags_1, opened_1 > {20'b0, TCP_MAX_WINDOW} ? TCP_MAX_WINDOW : opened_1[31:0]};

    first_8 <= mode_7.is_first ? {8'b0, flight_7} : TCP_MAX_WINDOW;
    // A first window of one segment makes Linux halve its MSS.
    floor_8 <= mode_7.is_first && flight_7 > clamp_7 ? flight_7 : clamp_7;
    if (mode_7.clamps) rest_8 <= {8'b0, clamp_7};
    else if (mode_7.is_open || !beyond_7[32]) rest_8 <= TCP_MAX_WINDOW;
    else rest_8 <= release_7;

    floor <= {8'b0, floor_8};
    limit <= first_8 < rest_8 ? first_8 : rest_8;
  end

  window_floor clamps (
      .clk,
      .mss_bytes(mss_1),
      .segments(p.floor_segments[7:0]),
      .shift(shift_1),
      .flows(flows_1),
      .buffer_bytes(p.buffer_bytes),
      .floor(clamp_7)
  );

  window_floor flights (
      .clk,
      .mss_bytes(mss_1),
      .segments(p.first_flight_segments[7:0]),
      .shift(shift_1),
      .flows(flows_1),
      .buffer_bytes(p.buffer_bytes),
      .floor(flight_7)
  );

  delay #(
      .BITS  ($bits(mode_t)),
      .CLOCKS(4)
  ) mode_of (
      .clk,
      .value  (mode_2),
      .delayed(mode_6)
  );

  assign drops = p.sigma_bytes != 0 && !is_control &&
      {1'b0, queue_bytes} + {1'b0, packet_bytes} > {1'b0, p.sigma_bytes};
endmodule

`default_nettype wire
