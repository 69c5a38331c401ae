// SPDX-License-Identifier: Apache-2.0
// FairQ at a port, and FairSwitch, which is a setting of its parameters (core/fairq.h).
//
// core: fairq_init after a reset; fairq_on_flows, _on_mss, _on_tick and its parts as events, one at
// a time; fairq_on_ack up to tcp_lower_window. Divisions take 34 clocks each on one serial divider,
// products 2 on one multiplier, so an event takes up to 200 clocks (1.3 us): far less than a tick,
// and ACKs do not wait: until the event is done they see the state before it.
// Latency: 4 clocks from question to limit and floor, one per clock.
`default_nettype none

module fairq
  import core_pkg::*;
(
    input  wire logic                 clk,
    input  wire logic                 rst,
    input  wire fairq_params_t        p,
    // Events, accepted when valid and ready; then `done` once the new state is in force.
    input  wire logic                 event_valid,
    output logic                      event_ready,
    input  wire logic          [ 2:0] event_kind,
    input  wire logic          [31:0] event_value,  // flows, segment size or queue, bytes
    input  wire logic          [63:0] event_total,  // bytes that have left
    input  wire logic          [63:0] now_ns,
    output logic                      event_done,
    // An ACK.
    input  wire logic          [ 7:0] scale,
    input  wire logic          [15:0] mss_bytes,    // of its flow; 0: not known
    input  wire logic          [ 1:0] kind,         // TCP_ACK_*
    output logic               [31:0] limit,
    output logic               [31:0] floor,
    output logic               [31:0] window_bytes  // a flow's window, before the floor
);
  localparam logic [2:0] EVENT_FLOWS = 3'd0, EVENT_MSS = 3'd1, EVENT_TICK = 3'd2;
  // Parts of a tick, for tests; in the switch they are tied off.
  localparam logic [2:0] EVENT_SENT = 3'd3, EVENT_SAMPLE = 3'd4, EVENT_INTERVAL = 3'd5;
  localparam logic [39:0] MAX_Q8 = FAIRQ_MAX_WINDOW_Q8[39:0];
  localparam logic [39:0] MAX_SENT = FAIRQ_MAX_SENT[39:0];

  // State, as in struct fairq_state.
  logic [39:0] window_q8  /* verilator public_flat_rd */;
  logic signed [47:0] gamma_q8  /* verilator public_flat_rd */;
  logic [63:0] round_ns  /* verilator public_flat_rd */;
  logic [63:0] round_total  /* verilator public_flat_rd */;
  logic [39:0] sent_bytes  /* verilator public_flat_rd */;
  logic [39:0] sent_before_bytes  /* verilator public_flat_rd */;
  logic [32:0] update_age_ns  /* verilator public_flat_rd */;
  logic [31:0] target_bytes  /* verilator public_flat_rd */;
  logic [24:0] flows  /* verilator public_flat_rd */;
  logic [15:0] mss  /* verilator public_flat_rd */;
  logic [15:0] ticks  /* verilator public_flat_rd */;
  logic in_slow_start  /* verilator public_flat_rd */;

  // An event in work.
  typedef enum logic [4:0] {
    INIT,
    INIT_TARGET,
    IDLE,
    FLOWS,
    FLOWS_PRODUCT,
    FLOWS_DONE,
    SENT,
    SAMPLE,
    AGE,
    INTERVAL,
    DRIFT_PRODUCT,
    DRIFT_DIVIDE,
    GAMMA,
    CHANGE,
    MOVE,
    BOUND,
    BOUND_DIVIDE,
    BOUND_DONE,
    INTERVAL_END,
    SHOW,
    SHOW_DIVIDED,
    MULTIPLY,
    DIVIDE
  } step_e;
  step_e step, after;  // `after`: where a product or quotient is awaited
  logic [ 2:0] event_now;
  logic [31:0] value;
  logic [63:0] total, time_ns;
  logic [24:0] new_flows;
  logic [31:0] queue, mean;
  logic is_below, is_up;

  logic [39:0] factor_a;
  logic [31:0] factor_b;
  logic [71:0] product;
  logic        is_product;
  logic div_start, div_ready, div_done;
  logic [63:0] dividend, numerator, quotient;
  logic [47:0] divisor;

  div_32 #(
      .DIVIDEND (64),
      .DIVISOR  (48),
      .PIPELINED(0)
  ) divider (
      .clk,
      .rst,
      .start(div_start),
      .ready(div_ready),
      .dividend,
      .divisor,
      .done (div_done),
      .quotient
  );

  avg_32 average (
      .clk,
      .rst,
      .sample(step == SAMPLE),
      .value,
      .mean
  );

  function automatic logic [39:0] at_most(input logic [63:0] amount);
    at_most = amount > {24'b0, MAX_Q8} ? MAX_Q8 : amount[39:0];
  endfunction

  logic [39:0] target_q8, restart_q8;
  logic [63:0] elapsed, left_total;
  logic [31:0] round_length, at_queue;
  logic [39:0] sent_now, sent_most;
  logic [32:0] age_over;
  logic [ 1:0] slow_start;

  assign target_q8 = {target_bytes, 8'b0};
  assign restart_q8 = target_q8 > MAX_Q8 ? MAX_Q8 : target_q8;
  assign elapsed = time_ns > round_ns ? time_ns - round_ns : '0;
  assign left_total = total - round_total;
  assign sent_now = left_total > {24'b0, MAX_SENT} ? MAX_SENT : left_total[39:0];
  assign sent_most = sent_bytes > sent_before_bytes ? sent_bytes : sent_before_bytes;
  assign age_over = update_age_ns - {1'b0, p.interval_ns};
  assign at_queue = p.sample_interval_ns != 0 ? mean : value;
  assign slow_start = in_slow_start ? p.slow_start[1:0] : FAIRQ_SLOW_START_OFF[1:0];
  always_comb begin
    round_length = p.longest_rtt_ns;
    if (p.interval_ns > round_length) round_length = p.interval_ns;
    if (p.sample_interval_ns > round_length) round_length = p.sample_interval_ns;
  end

  assign event_ready = step == IDLE;

  always_ff @(posedge clk) begin
    event_done <= 1'b0;
    div_start  <= 1'b0;
    is_product <= 1'b0;
    product    <= factor_a * factor_b;
    case (step)
      INIT: begin
        mss <= p.mss_bytes[15:0];
        factor_a <= {8'b0, p.buffer_bytes};
        factor_b <= p.alpha_q16;
        after <= INIT_TARGET;
        step <= MULTIPLY;
      end
      INIT_TARGET: begin
        target_bytes <= product[47:16] == 0 ? 32'd1 : product[47:16];
        new_flows <= '0;
        event_now <= EVENT_FLOWS;
        step <= FLOWS_DONE;
      end
      IDLE: begin
        event_now <= event_kind;
        value <= event_value;
        total <= event_total;
        time_ns <= now_ns;
        new_flows <= event_value > FAIRQ_MAX_FLOWS ? FAIRQ_MAX_FLOWS[24:0] : event_value[24:0];
        if (event_valid)
          case (event_kind)
            EVENT_FLOWS: step <= FLOWS;
            EVENT_MSS: begin
              mss  <= event_value == 0 ? 16'd1 :
                  event_value > MAX_MSS_BYTES ? MAX_MSS_BYTES[15:0] : event_value[15:0];
              step <= SHOW;
            end
            EVENT_SAMPLE: step <= SAMPLE;
            EVENT_INTERVAL: step <= INTERVAL;
            default: step <= SENT;
          endcase
      end

      // The window goes as the inverse of the number of flows, or starts again at a share.
      FLOWS: begin
        after <= FLOWS_PRODUCT;
        factor_a <= flows == 0 ? restart_q8 : window_q8;
        factor_b <= {7'b0, flows == 0 ? 25'd1 : flows};
        divisor <= {23'b0, new_flows};
        if (new_flows == flows) step <= SHOW;
        else if (new_flows == 0) step <= FLOWS_DONE;
        else if (p.flow_rule[0] == FAIRQ_FLOWS_DIVIDE[0]) begin
          in_slow_start <= flows == 0 ? 1'b1 : in_slow_start;
          dividend <= {24'b0, target_q8};
          after <= FLOWS_DONE;
          div_start <= 1'b1;
          step <= DIVIDE;
        end else begin
          in_slow_start <= flows == 0 ? 1'b1 : in_slow_start;
          step <= MULTIPLY;
        end
      end
      FLOWS_PRODUCT: begin
        dividend <= product[63:0];
        div_start <= 1'b1;
        after <= FLOWS_DONE;
        step <= DIVIDE;
      end
      FLOWS_DONE: begin
        if (new_flows == 0) begin
          window_q8 <= restart_q8;
          in_slow_start <= 1'b1;
        end else window_q8 <= at_most(quotient);
        flows <= new_flows;
        step  <= SHOW;
      end

      // Rounds of the longest round trip: what left in this one and in the one before.
      SENT: begin
        sent_bytes <= sent_now;
        if (elapsed >= {32'b0, round_length}) begin
          sent_before_bytes <= elapsed[63:1] < {31'b0, round_length} ? sent_now : '0;
          sent_bytes <= '0;
          round_total <= total;
          round_ns <= time_ns;
        end
        if (event_now == EVENT_SENT) step <= SHOW;
        else step <= p.sample_interval_ns != 0 ? SAMPLE : INTERVAL;
      end
      SAMPLE: begin
        if (event_now == EVENT_TICK) begin
          update_age_ns <= update_age_ns + {1'b0, p.sample_interval_ns};
          step <= AGE;
        end else step <= SHOW;
      end
      AGE: begin
        if (update_age_ns < {1'b0, p.interval_ns}) step <= SHOW;
        else begin
          update_age_ns <= age_over > {1'b0, p.interval_ns} ? {1'b0, p.interval_ns} : age_over;
          step <= INTERVAL;
        end
      end

      // gamma += kappa * mss / M, with kappa = 1 - Q / target.
      INTERVAL: begin
        queue <= at_queue > p.buffer_bytes ? p.buffer_bytes : at_queue;
        factor_a <= {8'b0, target_bytes};
        factor_b <= p.intervals;
        after <= DRIFT_PRODUCT;
        step <= MULTIPLY;
      end
      DRIFT_PRODUCT: begin
        divisor <= product[47:0];
        is_below <= queue < target_bytes;
        factor_a <= {16'b0, mss, 8'b0};
        factor_b <= queue < target_bytes ? target_bytes - queue : queue - target_bytes;
        after <= DRIFT_DIVIDE;
        step <= MULTIPLY;
      end
      DRIFT_DIVIDE: begin
        dividend <= product[63:0];
        div_start <= 1'b1;
        after <= GAMMA;
        step <= DIVIDE;
      end
      GAMMA: begin
        gamma_q8 <= is_below ? gamma_q8 + $signed(
            {1'b0, quotient[46:0]}
        ) : gamma_q8 - $signed(
            {1'b0, quotient[46:0]}
        );
        ticks <= ticks + 16'd1;
        step <= {1'b0, ticks} + 17'd1 >= {1'b0, p.intervals[15:0]} ? CHANGE : INTERVAL_END;
      end

      CHANGE: begin
        divisor <= {23'b0, flows == 0 ? 25'd1 : flows};
        is_up <= 1'b1;
        dividend <= {39'b0, mss, 9'b0};
        div_start <= 1'b1;
        after <= MOVE;
        step <= DIVIDE;
        if (slow_start == FAIRQ_SLOW_START_EACH[1:0]) divisor <= 48'd1;
        else if (slow_start == FAIRQ_SLOW_START_OFF[1:0]) begin
          is_up <= gamma_q8 >= 0;
          dividend <= {16'b0, gamma_q8 >= 0 ? gamma_q8 : -gamma_q8};
          if (flows == 0) begin  // gamma / flows is not defined
            div_start <= 1'b0;
            step <= INTERVAL_END;
          end
        end
      end
      MOVE: begin
        if (is_up) window_q8 <= at_most({24'b0, window_q8} + quotient);
        else window_q8 <= {24'b0, window_q8} > quotient ? window_q8 - quotient[39:0] : '0;
        step <= p.longest_rtt_ns != 0 && flows != 0 ? BOUND : INTERVAL_END;
      end
      // Flows * window is at most the buffer plus what left within a round.
      BOUND: begin
        factor_a <= {8'b0, p.buffer_bytes} + sent_most;
        factor_b <= p.paths;
        after <= BOUND_DIVIDE;
        step <= MULTIPLY;
      end
      BOUND_DIVIDE: begin
        dividend <= {product[55:0], 8'b0};
        divisor <= {23'b0, flows};
        div_start <= 1'b1;
        after <= BOUND_DONE;
        step <= DIVIDE;
      end
      BOUND_DONE: begin
        if (quotient < {24'b0, window_q8}) window_q8 <= quotient[39:0];
        step <= INTERVAL_END;
      end
      INTERVAL_END: begin
        if (ticks >= p.intervals[15:0]) begin
          gamma_q8 <= '0;
          ticks <= '0;
        end
        if (queue >= target_bytes) in_slow_start <= 1'b0;
        step <= SHOW;
      end

      // The window of one path.
      SHOW: begin
        dividend <= {24'b0, window_q8};
        divisor <= {16'b0, p.paths};
        after <= SHOW_DIVIDED;
        div_start <= p.paths > 1;
        numerator <= {24'b0, window_q8};
        step <= p.paths > 1 ? DIVIDE : SHOW_DIVIDED;
      end
      SHOW_DIVIDED: begin
        event_done <= 1'b1;
        step <= IDLE;
      end

      MULTIPLY: begin  // the factors are in place; a clock later so is the product
        is_product <= 1'b1;
        if (is_product) begin
          is_product <= 1'b0;
          step <= after;
        end
      end
      default: if (div_done) step <= after;
    endcase
    if (rst) begin
      step <= INIT;
      flows <= '0;
      window_q8 <= '0;
      gamma_q8 <= '0;
      ticks <= '0;
      round_ns <= '0;
      round_total <= '0;
      sent_bytes <= '0;
      sent_before_bytes <= '0;
      update_age_ns <= '0;
      in_slow_start <= 1'b1;
      event_done <= 1'b0;
      is_product <= 1'b0;
      div_start <= 1'b0;
    end
  end

  // What ACKs see.
  logic [63:0] shown;
  logic [24:0] shown_flows;
  logic [15:0] shown_mss;

  assign shown = p.paths > 1 ? quotient >> 8 : numerator >> 8;
  always_ff @(posedge clk) begin
    if (step == SHOW_DIVIDED) begin
      window_bytes <= shown > {32'b0, TCP_MAX_WINDOW} ? TCP_MAX_WINDOW : shown[31:0];
      shown_flows <= flows;
      shown_mss <= mss;
    end
    if (rst) begin
      window_bytes <= TCP_MAX_WINDOW;
      shown_flows <= '0;
      shown_mss <= p.mss_bytes[15:0];
    end
  end

  // 1: sizes. 2: floor, rounded limit. 3: room for such windows of all flows. 4: the floor then.
  logic [3:0] shift_1;
  logic [15:0] mss_1, mss_2, mss_3;
  logic [7:0] segments_1;
  logic [31:0] limit_1, limit_2, limit_3;
  logic [23:0] floor_1, floor_2, floor_3;
  logic [24:0] flows_1, flows_2, written_2;
  logic [49:0] all_3;

  assign floor_1 = mss_1 * segments_1;

  always_ff @(posedge clk) begin
    mss_1 <= mss_bytes != 0 ? mss_bytes : shown_mss;
    segments_1 <= kind == TCP_ACK_LATER[1:0] ? p.floor_segments[7:0] : p.first_floor_segments[7:0];
    shift_1 <= kind == TCP_ACK_SYN[1:0] ? 4'd0 :
        scale > TCP_MAX_SCALE[7:0] ? TCP_MAX_SCALE[3:0] : scale[3:0];
    limit_1 <= window_bytes;
    flows_1 <= shown_flows;

    mss_2 <= mss_1;
    floor_2 <= floor_1;
    flows_2 <= flows_1;
    limit_2 <= p.rounds_down[0] ? limit_1 >> shift_1 << shift_1 : limit_1;
    written_2 <= ({1'b0, floor_1} + {10'b0, ~(15'h7fff << shift_1)}) >> shift_1 << shift_1;

    mss_3 <= mss_2;
    floor_3 <= floor_2;
    limit_3 <= limit_2;
    all_3 <= written_2 * flows_2;

    limit <= limit_3;
    floor <= floor_3 != 0 && all_3 > {18'b0, p.buffer_bytes} ? {16'b0, mss_3} : {8'b0, floor_3};
  end
endmodule

`default_nettype wire
