// SPDX-License-Identifier: Apache-2.0
// HCF at a port: which of two queues a frame joins, or none, and which may send (HCF Alg. 1).
//
// core: hcf_init after a reset, then hcf_on_enqueue, hcf_departed and hcf_on_tick as operations, one
// at a time, and hcf_on_dequeue at any time. Only counts are kept here; the frames are the caller's.
// The bins are one memory of BINS words. After a reset it is cleared, in as many clocks.
// Latency: an enqueue is answered after 18 + hashes clocks and takes 21 + 2 * hashes; the others take
// 4, and show in the next.
`default_nettype none

module hcf
  import core_pkg::*;
#(
    parameter int unsigned BINS = HCF_MAX_BINS  // a power of two; `bin_count` is at most that
) (
    input  wire logic               clk,
    input  wire logic               rst,
    input  wire hcf_params_t        p,
    input  wire logic        [31:0] seed,           // of this port's hashes
    // Operations, accepted when valid and ready.
    input  wire logic               op_valid,
    output logic                    op_ready,
    input  wire logic        [ 1:0] op_kind,
    input  wire logic        [31:0] op_key,         // of the flow, made with `key_seed`
    input  wire logic               op_queue,       // that the frame has left
    input  wire logic        [15:0] op_bytes,       // of the frame
    output logic                    enqueue_done,
    output logic             [ 1:0] enqueue_queue,  // HCF_NONE: drop
    // The queue to send from; HCF_NONE if both are empty.
    output logic             [ 1:0] next_queue,
    output logic             [31:0] key_seed
);
  localparam logic [1:0] OP_ENQUEUE = 2'd0, OP_DEPARTED = 2'd1;  // 2: a tick

  typedef struct packed {
    logic [31:0] epoch;
    logic [31:0] credits;
  } bin_t;

  localparam int unsigned BIN_BITS = $clog2(BINS);
  (* no_rw_check *)
  // bins are read in other clocks than written
  bin_t memory[BINS];
  logic [1:0][39:0] bytes  /* verilator public_flat_rd */;
  logic [1:0][31:0] packets  /* verilator public_flat_rd */;
  logic [31:0] epoch  /* verilator public_flat_rd */;
  logic [31:0] random, multiplier, offset;
  logic high  /* verilator public_flat_rd */;
  logic is_due;

  typedef enum logic [2:0] {
    CLEAR,
    START,
    IDLE,
    HASH,
    DECIDE,
    SPEND,
    SETTLE
  } step_e;
  step_e step;
  logic [8:0] count;  // bins cleared, or clocks of HASH or SETTLE
  logic [31:0] key;
  logic [15:0] size;

  // A new period: all credits back, another hash, and the other queue first if allowed.
  function automatic logic [31:0] shuffled(input logic [31:0] x);
    logic [31:0] a, b;
    a = x ^ x << 13;
    b = a ^ a >> 17;
    shuffled = b ^ b << 5;
  endfunction

  // Of the counts, a clock old or two: operations wait that long (SETTLE).
  logic [1:0] is_none, is_one;  // frames in a queue
  logic [31:0] random_next, random_after;
  logic departs, is_tick, begins, departed_last;
  assign op_ready = step == IDLE;
  assign departs = op_valid && op_ready && op_kind == OP_DEPARTED && !is_none[op_queue];
  assign is_tick = op_valid && op_ready && op_kind[1];
  assign departed_last = departs && op_queue == high && is_one[high];
  assign begins = step == START ||
      (departed_last && (p.period == HCF_PERIOD_DYNAMIC || is_due)) ||
      (is_tick && (p.period == HCF_PERIOD_FIXED ||
      (p.period == HCF_PERIOD_ORDERED && is_none[high])));
  assign key_seed = offset;
  assign next_queue = !is_none[high] ? {1'b0, high} : !is_none[!high] ? {1'b0, !high} :
      HCF_NONE[1:0];

  // Room in a queue, and in the buffer as a whole.
  logic [1:0][40:0] load;  // with this frame: of the high queue and of the low one
  logic [1:0][31:0] held;
  logic [41:0] load_all, max_load_all;
  logic [32:0] held_all, max_held_all;
  logic [1:0] has_room;
  logic has_packets, has_bytes;

  always_ff @(posedge clk) begin
    for (int unsigned q = 0; q < 2; q++) begin
      is_none[q] <= packets[q] == 0;
      is_one[q]  <= packets[q] == 32'd1;
      held[q]    <= packets[q==0?high : !high];
      load[q]    <= {1'b0, bytes[q==0?high : !high]} + {25'b0, size};
    end
    has_room[0] <= held[0] != '1 &&
        (p.capacity_packets_high == 0 || held[0] < p.capacity_packets_high) &&
        (p.capacity_bytes_high == 0 || load[0] <= {9'b0, p.capacity_bytes_high});
    has_room[1] <= held[1] != '1 &&
        (p.capacity_packets_low == 0 || held[1] < p.capacity_packets_low) &&
        (p.capacity_bytes_low == 0 || load[1] <= {9'b0, p.capacity_bytes_low});

    held_all <= {1'b0, packets[0]} + {1'b0, packets[1]};
    load_all <= {2'b0, bytes[high]} + {1'b0, load[1]};
    max_held_all <= {1'b0, p.capacity_packets_high} + {1'b0, p.capacity_packets_low};
    max_load_all <= {10'b0, p.capacity_bytes_high} + {10'b0, p.capacity_bytes_low};
    has_packets <= p.capacity_packets_high == 0 || p.capacity_packets_low == 0 ||
        held_all < max_held_all;
    has_bytes <= p.capacity_bytes_high == 0 || p.capacity_bytes_low == 0 ||
        load_all <= max_load_all;

    random_next <= shuffled(random);
    random_after <= shuffled(random_next);
  end

  // The bins of the flow, one hash per clock.
  logic [31:0] sum_0, hash_4, mixed_5, stride;
  logic [63:0] product_3, product_8;
  logic [40:0] scaled_11;
  logic [ 7:0] at_12;
  bin_t read_12, read_13;
  logic [31:0] credits_14;
  logic [3:0][7:0] flow_bin;
  logic [3:0][31:0] left;
  logic has_credits, to_high, to_low;
  logic [31:0] cost, rest;
  logic [32:0] less;  // of a bin's credits; below 0 if the highest bit is set
  logic [1:0] spent;
  logic [7:0] spent_bin;
  logic is_spent;
  logic [8:0] bin_of, credits_of;  // the hash whose bin is at_12, whose credits are credits_14

  multiply by_multiplier (
      .clk,
      .a(sum_0),
      .b(multiplier | 32'd1),
      .product(product_3)
  );

  multiply by_golden (
      .clk,
      .a(mixed_5),
      .b(HCF_GOLDEN_32),
      .product(product_8)
  );

  multiply #(
      .B(9)
  ) by_bins (
      .clk,
      .a(product_8[31:0]),
      .b(p.bin_count[8:0]),
      .product(scaled_11)
  );

  assign less = {1'b0, left[spent]} - {1'b0, cost};
  assign bin_of = count - 9'd13;
  assign credits_of = count - 9'd15;
  always_ff @(posedge clk) begin
    to_low  <= has_room[1] && has_packets && has_bytes;
    to_high <= (has_credits || (p.drop == HCF_DROP_BOTH && !to_low)) && has_room[0];
  end

  always_ff @(posedge clk) begin
    enqueue_done <= 1'b0;
    is_spent <= 1'b0;
    if (step == CLEAR) memory[count[BIN_BITS-1:0]] <= '0;
    else if (is_spent) memory[spent_bin[BIN_BITS-1:0]] <= {epoch, rest};
    case (step)
      CLEAR: begin
        count <= count + 9'd1;
        if (count == 9'(BINS - 1)) step <= START;
      end
      START: begin
        high  <= 1'b0;
        count <= '0;
        step  <= SETTLE;
      end
      IDLE: begin
        key <= op_key;
        size <= op_bytes;
        count <= '0;
        stride <= '0;
        has_credits <= 1'b0;
        if (departs) begin
          packets[op_queue] <= packets[op_queue] - 32'd1;
          bytes[op_queue] <= bytes[op_queue] > {24'b0, op_bytes} ?
              bytes[op_queue] - {24'b0, op_bytes} : '0;
        end
        if (is_tick && p.period == HCF_PERIOD_ORDERED && !is_none[high]) is_due <= 1'b1;
        if (op_valid) step <= op_kind == OP_ENQUEUE ? HASH : SETTLE;
      end
      HASH: begin
        count <= count + 9'd1;
        sum_0 <= key + stride;
        stride <= stride + HCF_GOLDEN_32;
        hash_4 <= product_3[31:0] + offset;
        mixed_5 <= hash_4 ^ hash_4 >> 16;
        at_12 <= scaled_11[39:32];
        read_12 <= memory[scaled_11[32+:BIN_BITS]];
        read_13 <= read_12;
        credits_14 <= read_13.epoch == epoch ? read_13.credits : p.credits;
        if (bin_of < 9'd4) flow_bin[bin_of[1:0]] <= at_12;
        if (credits_of < 9'd4) begin
          left[credits_of[1:0]] <= credits_14;
          has_credits <= has_credits || credits_14 != 0;
        end
        if (count == 9'd15 + {6'b0, p.hashes[2:0]}) begin
          count <= '0;
          step  <= DECIDE;
        end
      end
      DECIDE: begin
        spent <= '0;
        cost <= !to_high ? '1 : p.credits_in_bytes[0] ? {16'b0, size} : 32'd1;
        step <= to_high || (to_low && !p.low_keeps_credits[0]) ? SPEND : SETTLE;
        enqueue_done <= 1'b1;
        enqueue_queue <= to_high ? {1'b0, high} : to_low ? {1'b0, !high} : HCF_NONE[1:0];
        if (to_high || to_low) begin
          packets[to_high?high : !high] <= packets[to_high?high : !high] + 32'd1;
          bytes[to_high?high : !high]   <= bytes[to_high?high : !high] + {24'b0, size};
        end
      end
      SPEND: begin
        is_spent <= 1'b1;
        spent_bin <= flow_bin[spent];
        rest <= less[32] ? '0 : less[31:0];
        spent <= spent + 2'd1;
        if ({1'b0, spent} + 3'd1 == p.hashes[2:0]) step <= SETTLE;
      end
      default: begin  // SETTLE
        count <= count + 9'd1;
        if (count == 9'd2) step <= IDLE;
      end
    endcase
    if (begins) begin
      epoch <= epoch + 32'd1;
      multiplier <= random_next;
      offset <= random_after;
      random <= random_after;
      is_due <= 1'b0;
      if (p.swap[0] && (is_none[high] || departed_last) && step != START) high <= !high;
    end
    if (rst) begin
      step <= CLEAR;
      count <= '0;
      bytes <= '0;
      packets <= '0;
      epoch <= '0;
      high <= 1'b0;
      random <= seed != 0 ? seed : HCF_GOLDEN_32;
      enqueue_done <= 1'b0;
    end
  end
endmodule

`default_nettype wire
