// SPDX-License-Identifier: Apache-2.0
// FairQ at a port, and FairSwitch, which is a setting of its parameters (core/fairq.h).
//
// core: fairq_init after a reset; fairq_on_flows, _on_mss, _on_tick and its parts as events, one at
// a time; fairq_on_ack up to tcp_lower_window. Divisions take 66 clocks each on one serial divider,
// products 34 on one adder. A tick has at most four divisions and takes up to 388 clocks (2.5 us), a
// new number of flows has two and takes 175: far less than an interval. ACKs do not wait: until the event is done they see the state before it.
// Latency: 9 clocks from question to limit and floor, one per clock.
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
    COMPARE,
    FLOWS,
    FLOWS_PRODUCT,
    FLOWS_DONE,
    SENT,
    SENT_SUMS,
    SENT_ROUND,
    SAMPLE,
    AGE,
    AGE_OVER,
    INTERVAL,
    DRIFT,
    DRIFT_PRODUCT,
    GAMMA,
    CHANGE,
    MOVE,
    MOVED,
    BOUND,
    BOUND_DIVIDE,
    BOUND_DONE,
    INTERVAL_END,
    SHOW,
    SHOW_DIVIDED,
    SHOWN
  } step_e;
  step_e step;
  logic is_multiplying, is_dividing;  // the step waits for that
  logic [ 2:0] event_now;
  logic [31:0] value;
  logic [63:0] total, time_ns;
  logic [24:0] new_flows;
  logic [31:0] queue, mean;  // of the interval; of the samples
  logic is_up, is_same, is_none, is_last;

  // A product grows by one bit of factor_b per clock.
  logic [39:0] factor_a;
  logic [31:0] factor_b;
  logic [71:0] product;
  logic [40:0] product_sum;
  logic [ 5:0] product_bits;
  logic div_start, div_ready, div_done;
  logic [63:0] dividend, quotient;
  logic [47:0] divisor;

  div_32 #(
      .DIVIDEND (64),
      .DIVISOR  (48),
      .BITS     (1),
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

  // Of parameters and state, some clocks old: no step needs them so soon after a change.
  logic [39:0] most_sent, room;
  logic [31:0] longest_wait, round_length, at_queue, drift;
  logic [32:0] excess;  // of the queue over its target, below 0 if the highest bit is set
  logic is_sampled, has_paths, has_flows, has_bound, is_last_tick, is_young;
  logic is_over, is_less;  // the quotient: of the largest window, of this one

  logic [39:0] target_q8, restart_q8;
  assign target_q8   = {target_bytes, 8'b0};
  assign restart_q8  = target_q8 > MAX_Q8 ? MAX_Q8 : target_q8;
  assign product_sum = {1'b0, product[71:32]} + (product[0] ? {1'b0, factor_a} : '0);
  always_ff @(posedge clk) begin
    longest_wait <= p.sample_interval_ns > p.interval_ns ? p.sample_interval_ns : p.interval_ns;
    round_length <= p.longest_rtt_ns > longest_wait ? p.longest_rtt_ns : longest_wait;
    is_sampled <= p.sample_interval_ns != 0;
    has_paths <= p.paths > 1;
    has_flows <= flows != 0;
    has_bound <= p.longest_rtt_ns != 0;
    is_last_tick <= {1'b0, ticks} + 17'd1 >= {1'b0, p.intervals[15:0]};
    at_queue <= is_sampled ? mean : value;
    queue <= at_queue > p.buffer_bytes ? p.buffer_bytes : at_queue;
    excess <= {1'b0, queue} - {1'b0, target_bytes};
    drift <= excess[32] ? -excess[31:0] : excess[31:0];
    is_young <= update_age_ns < {1'b0, p.interval_ns};
    is_over <= quotient > {24'b0, MAX_Q8};
    is_less <= quotient < {24'b0, window_q8};
    most_sent <= sent_bytes > sent_before_bytes ? sent_bytes : sent_before_bytes;
    room <= {8'b0, p.buffer_bytes} + most_sent;
  end

  // Of a round, and of the age of the last update.
  logic [63:0] elapsed, left_total;
  logic [39:0] sent_now;
  logic [32:0] age_over;
  logic is_round, is_late;
  logic [64:0] moved;  // the window; beyond 0 if its highest bit is set
  logic [ 1:0] slow_start;
  logic [63:0] shown;

  assign slow_start  = in_slow_start ? p.slow_start[1:0] : FAIRQ_SLOW_START_OFF[1:0];

  assign event_ready = step == IDLE;

  always_ff @(posedge clk) begin
    event_done <= 1'b0;
    div_start <= 1'b0;
    product_bits <= '0;
    if (is_multiplying) begin
      product <= product_bits == 0 ? {40'b0, factor_b} : {product_sum, product[31:1]};
      product_bits <= product_bits + 6'd1;
      if (product_bits == 6'd32) is_multiplying <= 1'b0;
    end else if (is_dividing) begin
      if (div_done) is_dividing <= 1'b0;
    end else
      case (step)
        INIT: begin
          mss <= p.mss_bytes[15:0];
          factor_a <= {8'b0, p.buffer_bytes};
          factor_b <= p.alpha_q16;
          is_multiplying <= 1'b1;
          step <= INIT_TARGET;
        end
        INIT_TARGET: begin
          target_bytes <= product[47:16] == 0 ? 32'd1 : product[47:16];
          new_flows <= '0;
          is_none <= 1'b1;
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
              EVENT_FLOWS: step <= COMPARE;
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
        COMPARE: begin
          is_same <= new_flows == flows;
          is_none <= new_flows == 0;
          step <= FLOWS;
        end
        FLOWS: begin
          factor_a <= !has_flows ? restart_q8 : window_q8;
          factor_b <= {7'b0, !has_flows ? 25'd1 : flows};
          divisor  <= {23'b0, new_flows};
          if (is_same) step <= SHOW;
          else if (is_none) step <= FLOWS_DONE;
          else if (p.flow_rule[0] == FAIRQ_FLOWS_DIVIDE[0]) begin
            in_slow_start <= !has_flows ? 1'b1 : in_slow_start;
            dividend <= {24'b0, target_q8};
            div_start <= 1'b1;
            is_dividing <= 1'b1;
            step <= FLOWS_DONE;
          end else begin
            in_slow_start <= !has_flows ? 1'b1 : in_slow_start;
            is_multiplying <= 1'b1;
            step <= FLOWS_PRODUCT;
          end
        end
        FLOWS_PRODUCT: begin
          dividend <= product[63:0];
          div_start <= 1'b1;
          is_dividing <= 1'b1;
          step <= FLOWS_DONE;
        end
        FLOWS_DONE: begin
          if (is_none) begin
            window_q8 <= restart_q8;
            in_slow_start <= 1'b1;
          end else window_q8 <= is_over ? MAX_Q8 : quotient[39:0];
          flows <= new_flows;
          step  <= SHOW;
        end

        // Rounds of the longest round trip: what left in this one and in the one before.
        SENT: begin
          elapsed <= time_ns > round_ns ? time_ns - round_ns : '0;
          left_total <= total - round_total;
          step <= SENT_SUMS;
        end
        SENT_SUMS: begin
          sent_now <= left_total > {24'b0, MAX_SENT} ? MAX_SENT : left_total[39:0];
          is_round <= elapsed >= {32'b0, round_length};
          is_late <= elapsed[63:1] >= {31'b0, round_length};
          step <= SENT_ROUND;
        end
        SENT_ROUND: begin
          sent_bytes <= sent_now;
          if (is_round) begin
            sent_before_bytes <= is_late ? '0 : sent_now;
            sent_bytes <= '0;
            round_total <= total;
            round_ns <= time_ns;
          end
          if (event_now == EVENT_SENT) step <= SHOW;
          else step <= is_sampled ? SAMPLE : INTERVAL;
        end
        SAMPLE: begin
          if (event_now == EVENT_TICK) begin
            update_age_ns <= update_age_ns + {1'b0, p.sample_interval_ns};
            step <= AGE;
          end else step <= SHOW;
        end
        AGE: begin
          age_over <= update_age_ns - {1'b0, p.interval_ns};
          step <= AGE_OVER;
        end
        AGE_OVER: begin
          if (!is_young)
            update_age_ns <= age_over > {1'b0, p.interval_ns} ? {1'b0, p.interval_ns} : age_over;
          step <= is_young ? SHOW : INTERVAL;
        end

        // gamma += kappa * mss / M, with kappa = 1 - Q / target.
        INTERVAL: begin
          factor_a <= {8'b0, target_bytes};
          factor_b <= p.intervals;
          is_multiplying <= 1'b1;
          step <= DRIFT;
        end
        DRIFT: begin
          divisor <= product[47:0];
          factor_a <= {16'b0, mss, 8'b0};
          factor_b <= drift;
          is_multiplying <= 1'b1;
          step <= DRIFT_PRODUCT;
        end
        DRIFT_PRODUCT: begin
          dividend <= product[63:0];
          div_start <= 1'b1;
          is_dividing <= 1'b1;
          step <= GAMMA;
        end
        GAMMA: begin
          gamma_q8 <= excess[32] ? gamma_q8 + $signed(
              {1'b0, quotient[46:0]}
          ) : gamma_q8 - $signed(
              {1'b0, quotient[46:0]}
          );
          ticks <= ticks + 16'd1;
          is_last <= is_last_tick;
          step <= is_last_tick ? CHANGE : INTERVAL_END;
        end

        CHANGE: begin
          divisor <= {23'b0, !has_flows ? 25'd1 : flows};
          is_up <= 1'b1;
          dividend <= {39'b0, mss, 9'b0};
          div_start <= 1'b1;
          is_dividing <= 1'b1;
          step <= MOVE;
          if (slow_start == FAIRQ_SLOW_START_EACH[1:0]) divisor <= 48'd1;
          else if (slow_start == FAIRQ_SLOW_START_OFF[1:0]) begin
            is_up <= gamma_q8 >= 0;
            dividend <= {16'b0, gamma_q8 >= 0 ? gamma_q8 : -gamma_q8};
            if (!has_flows) begin  // gamma / flows is not defined
              div_start <= 1'b0;
              is_dividing <= 1'b0;
              step <= INTERVAL_END;
            end
          end
        end
        MOVE: begin
          moved <= is_up ? {25'b0, window_q8} + {1'b0, quotient} :
            {25'b0, window_q8} - {1'b0, quotient};
          step <= MOVED;
        end
        MOVED: begin
          window_q8 <= moved > {25'b0, MAX_Q8} ? MAX_Q8 : moved[39:0];
          if (moved[64] && !is_up) window_q8 <= '0;
          step <= has_bound && has_flows ? BOUND : INTERVAL_END;
        end
        // Flows * window is at most the buffer plus what left within a round.
        BOUND: begin
          factor_a <= room;
          factor_b <= p.paths;
          is_multiplying <= 1'b1;
          step <= BOUND_DIVIDE;
        end
        BOUND_DIVIDE: begin
          dividend <= {product[55:0], 8'b0};
          divisor <= {23'b0, flows};
          div_start <= 1'b1;
          is_dividing <= 1'b1;
          step <= BOUND_DONE;
        end
        BOUND_DONE: begin
          if (is_less) window_q8 <= quotient[39:0];
          step <= INTERVAL_END;
        end
        INTERVAL_END: begin
          if (is_last) begin
            gamma_q8 <= '0;
            ticks <= '0;
          end
          if (!excess[32]) in_slow_start <= 1'b0;
          step <= SHOW;
        end

        // The window of one path.
        SHOW: begin
          dividend <= {24'b0, window_q8};
          divisor <= {16'b0, p.paths};
          div_start <= has_paths;
          is_dividing <= has_paths;
          step <= SHOW_DIVIDED;
        end
        SHOW_DIVIDED: begin
          shown <= has_paths ? quotient >> 8 : dividend >> 8;
          step  <= SHOWN;
        end
        SHOWN: begin
          event_done <= 1'b1;
          step <= IDLE;
        end
        default: step <= INIT;
      endcase
    if (rst) begin
      step <= INIT;
      is_multiplying <= 1'b0;
      is_dividing <= 1'b0;
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
      product_bits <= '0;
      div_start <= 1'b0;
    end
  end

  // What ACKs see.
  logic [24:0] shown_flows;
  logic [15:0] shown_mss;

  always_ff @(posedge clk) begin
    if (step == SHOWN) begin
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

  // 1: sizes. 2 to 7: the floor. 8, 9: as long as HSCC takes.
  logic [ 3:0] shift_1;
  logic [15:0] mss_1;
  logic [ 7:0] segments_1;
  logic [31:0] limit_1, limit_2;
  logic [24:0] flows_1;
  logic [23:0] floor_7, floor_9;

  always_ff @(posedge clk) begin
    mss_1 <= mss_bytes != 0 ? mss_bytes : shown_mss;
    segments_1 <= kind == TCP_ACK_LATER[1:0] ? p.floor_segments[7:0] : p.first_floor_segments[7:0];
    shift_1 <= kind == TCP_ACK_SYN[1:0] ? 4'd0 :
        scale > TCP_MAX_SCALE[7:0] ? TCP_MAX_SCALE[3:0] : scale[3:0];
    limit_1 <= window_bytes;
    flows_1 <= shown_flows;
    limit_2 <= p.rounds_down[0] ? limit_1 & (32'hffffffff << shift_1) : limit_1;
  end

  window_floor smallest (
      .clk,
      .mss_bytes(mss_1),
      .segments(segments_1),
      .shift(shift_1),
      .flows({7'b0, flows_1}),
      .buffer_bytes(p.buffer_bytes),
      .floor(floor_7)
  );

  delay #(
      .BITS  (24),
      .CLOCKS(2)
  ) floor_of (
      .clk,
      .value  (floor_7),
      .delayed(floor_9)
  );
  assign floor = {8'b0, floor_9};

  delay #(
      .BITS  (32),
      .CLOCKS(7)
  ) limit_of (
      .clk,
      .value  (limit_2),
      .delayed(limit)
  );
endmodule

`default_nettype wire
