// SPDX-License-Identifier: Apache-2.0
// HSCC at a port: hysteresis on the queue's length clamps every flow (HSCC §III).
//
// core: hscc_on_queue, hscc_on_ack up to tcp_lower_window, hscc_drops. The time of an answer is
// that of the clock before its question. core divides the time since the release by its interval;
// here the steps are counted as they fall due, one per clock at most, so `release_interval_ns` must
// not be shorter than a clock. Latency: 4 clocks from question to limit and floor, one per clock.
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
  logic is_released, is_stale, is_open;
  logic [63:0] seen_ns, step_due_ns;
  logic [20:0] steps;
  logic [30:0] opened;  // bytes that the release has added so far
  logic [32:0] opened_next;
  logic begins, ends;

  assign begins = queue_valid && queue_bytes >= p.alpha2_bytes;
  assign ends = queue_valid && !begins && queue_bytes <= p.alpha1_bytes && is_clamp;
  assign opened_next = {2'b0, opened} + {1'b0, p.release_step_bytes};
  assign is_clamping = is_clamp && !is_stale;
  assign is_open = !is_released || p.release_step_bytes == 0 || steps >= HSCC_MAX_STEPS[20:0];

  always_ff @(posedge clk) begin
    is_stale <= 1'b0;
    if (queue_valid) seen_ns <= now_ns;
    else is_stale <= p.expiry_ns != 0 && now_ns >= seen_ns + {32'b0, p.expiry_ns};

    if (is_released && now_ns >= step_due_ns && steps < HSCC_MAX_STEPS[20:0]) begin
      steps <= steps + 21'd1;
      step_due_ns <= step_due_ns + {32'b0, p.release_interval_ns};
      opened <= opened_next > {1'b0, TCP_MAX_WINDOW} ? TCP_MAX_WINDOW[30:0] : opened_next[30:0];
    end
    if (begins) is_clamp <= 1'b1;
    if (ends) begin
      is_clamp <= 1'b0;
      is_released <= 1'b1;
      steps <= '0;
      opened <= '0;
      step_due_ns <= now_ns + {32'b0, p.release_interval_ns};
    end
    if (rst) begin
      is_clamp <= 1'b0;
      is_released <= 1'b0;
      seen_ns <= '0;
    end
  end

  // 1: sizes. 2: clamp, first flight. 3: room for such clamps of all flows. 4: limit and floor.
  logic [15:0] mss_1, mss_2, mss_3;
  logic [3:0] shift_1;
  logic [1:0] kind_1, kind_2;
  logic [23:0] clamp_1, clamp_2, clamp_3, first_2, first_3, clamp;
  logic [24:0] written_2;
  logic [31:0] flows_1, flows_2, limit_3, release_3;
  logic [56:0] all_3;
  logic [30:0] opened_1, opened_2, opened_3;
  logic clamping_1, clamping_2, clamping_3, open_1, open_2, open_3, is_first_3;
  logic [32:0] release_sum;

  // core: window_floor_bytes
  assign clamp_1 = mss_1 * p.floor_segments[7:0];
  assign clamp = all_3 > {25'b0, p.buffer_bytes} ? {8'b0, mss_3} : clamp_3;
  assign release_sum = {9'b0, clamp} + {2'b0, opened_3};
  assign release_3 =
      open_3 || release_sum > {1'b0, TCP_MAX_WINDOW} ? TCP_MAX_WINDOW : release_sum[31:0];
  assign limit_3 = is_first_3 ? {8'b0, first_3} : TCP_MAX_WINDOW;

  always_ff @(posedge clk) begin
    mss_1 <= mss_bytes != 0 ? mss_bytes : p.mss_bytes[15:0];
    kind_1 <= kind;
    shift_1 <= kind == TCP_ACK_SYN[1:0] ? 4'd0 :
        scale > TCP_MAX_SCALE[7:0] ? TCP_MAX_SCALE[3:0] : scale[3:0];
    flows_1 <= flows;
    clamping_1 <= is_clamping;
    open_1 <= is_open || is_clamp;
    opened_1 <= opened;

    mss_2 <= mss_1;
    clamp_2 <= clamp_1;
    written_2 <= ({1'b0, clamp_1} + {10'b0, ~(15'h7fff << shift_1)}) >> shift_1 << shift_1;
    first_2 <= mss_1 * p.first_flight_segments[7:0];
    kind_2 <= kind_1;
    flows_2 <= flows_1;
    clamping_2 <= clamping_1;
    open_2 <= open_1;
    opened_2 <= opened_1;

    mss_3 <= mss_2;
    clamp_3 <= clamp_2;
    all_3 <= written_2 * flows_2;
    first_3 <= first_2;
    is_first_3 <= kind_2 != TCP_ACK_LATER[1:0] && p.first_flight_segments != 0;
    clamping_3 <= clamping_2;
    open_3 <= open_2;
    opened_3 <= opened_2;

    floor <= {8'b0, is_first_3 && first_3 > clamp ? first_3 : clamp};
    if (clamping_3) limit <= limit_3 < {8'b0, clamp} ? limit_3 : {8'b0, clamp};
    else limit <= limit_3 < release_3 ? limit_3 : release_3;
  end

  assign drops = p.sigma_bytes != 0 && !is_control &&
      {1'b0, queue_bytes} + {1'b0, packet_bytes} > {1'b0, p.sigma_bytes};
endmodule

`default_nettype wire
