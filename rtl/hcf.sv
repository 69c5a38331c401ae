// SPDX-License-Identifier: Apache-2.0
// HCF at a port: which of two queues a frame joins, or none, and which may send (HCF Alg. 1).
//
// core: hcf_init after a reset, then hcf_on_enqueue, hcf_departed and hcf_on_tick as operations, one
// at a time, and hcf_on_dequeue at any time. Only counts are kept here; the frames are the caller's.
// The bins are one memory of 256 words. After a reset it is cleared, in 256 clocks.
// Latency: an enqueue is answered after 7 + hashes clocks and takes 7 + 2 * hashes; the others 1.
`default_nettype none

module hcf
  import core_pkg::*;
(
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
  localparam logic [31:0] GOLDEN = 32'h9e3779b1;

  typedef struct packed {
    logic [31:0] epoch;
    logic [31:0] credits;
  } bin_t;

  bin_t memory[HCF_MAX_BINS];
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
    SPEND
  } step_e;
  step_e step;
  logic [8:0] count;  // bins cleared, or clocks of HASH
  logic [31:0] key;
  logic [15:0] size;

  // A new period: all credits back, another hash, and the other queue first if allowed.
  function automatic logic [31:0] shuffled(input logic [31:0] x);
    logic [31:0] a, b;
    a = x ^ x << 13;
    b = a ^ a >> 17;
    shuffled = b ^ b << 5;
  endfunction

  logic departs, is_tick, begins, is_empty, departed_last;
  logic [31:0] random_next, random_after;
  assign op_ready = step == IDLE;
  assign departs = op_valid && op_ready && op_kind == OP_DEPARTED && packets[op_queue] != 0;
  assign is_tick = op_valid && op_ready && op_kind[1];
  assign is_empty = packets[high] == 0;
  assign departed_last = departs && op_queue == high && packets[high] == 32'd1;
  assign begins = step == START ||
      (departed_last && (p.period == HCF_PERIOD_DYNAMIC || is_due)) ||
      (is_tick && (p.period == HCF_PERIOD_FIXED || (p.period == HCF_PERIOD_ORDERED && is_empty)));
  assign random_next = shuffled(random);
  assign random_after = shuffled(random_next);
  assign key_seed = offset;
  assign next_queue = !is_empty ? {1'b0, high} :
      packets[!high] != 0 ? {1'b0, !high} : HCF_NONE[1:0];

  // Room in a queue, and in the buffer as a whole.
  function automatic logic has_room(input logic [31:0] held, input logic [39:0] load,
                                    input logic [31:0] max_packets, input logic [31:0] max_bytes,
                                    input logic [15:0] frame);
    has_room = held != '1 && (max_packets == 0 || held < max_packets) &&
        (max_bytes == 0 || {1'b0, load} + {25'b0, frame} <= {9'b0, max_bytes});
  endfunction

  logic has_high, has_low, has_packets, has_bytes;
  assign has_high = has_room(
      packets[high], bytes[high], p.capacity_packets_high, p.capacity_bytes_high, size
  );
  assign has_low = has_room(
      packets[!high], bytes[!high], p.capacity_packets_low, p.capacity_bytes_low, size
  ) && has_packets && has_bytes;
  assign has_packets = p.capacity_packets_high == 0 || p.capacity_packets_low == 0 ||
      {1'b0, packets[0]} + {1'b0, packets[1]} <
      {1'b0, p.capacity_packets_high} + {1'b0, p.capacity_packets_low};
  assign has_bytes = p.capacity_bytes_high == 0 || p.capacity_bytes_low == 0 ||
      {2'b0, bytes[0]} + {2'b0, bytes[1]} + {26'b0, size} <=
      {10'b0, p.capacity_bytes_high} + {10'b0, p.capacity_bytes_low};

  // The bins of the flow, one hash per clock: 0 sum, 1 product, 2 mixed, 3 bin, 4 read.
  logic [31:0] sum_0, hash_1, mixed_2, stride;
  logic [40:0] scaled;
  logic [7:0] at_3;
  bin_t read_4;
  logic [3:0][7:0] flow_bin;
  logic [3:0][31:0] left;
  logic has_credits;
  logic [31:0] read_credits, cost;
  logic [1:0] spent;

  assign scaled = mixed_2 * p.bin_count[8:0];
  assign read_credits = read_4.epoch == epoch ? read_4.credits : p.credits;

  logic to_high, to_low;
  assign to_high = (has_credits || (p.drop == HCF_DROP_BOTH && !has_low)) && has_high;
  assign to_low  = !to_high && has_low;

  always_ff @(posedge clk) begin
    enqueue_done <= 1'b0;
    case (step)
      CLEAR: begin
        memory[count[7:0]] <= '0;
        count <= count + 9'd1;
        if (count == 9'd255) step <= START;
      end
      START: begin
        high <= 1'b0;
        step <= IDLE;
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
        if (is_tick && p.period == HCF_PERIOD_ORDERED && !is_empty) is_due <= 1'b1;
        if (op_valid && op_kind == OP_ENQUEUE) step <= HASH;
      end
      HASH: begin
        count   <= count + 9'd1;
        sum_0   <= key + stride;
        stride  <= stride + GOLDEN;
        hash_1  <= sum_0 * (multiplier | 32'd1) + offset;
        mixed_2 <= (hash_1 ^ hash_1 >> 16) * GOLDEN;
        at_3    <= scaled[39:32];
        read_4  <= memory[at_3];
        if (count[3:2] == 2'd1) flow_bin[count[1:0]] <= at_3;  // 4 to 7: of hash count - 4
        if (count >= 9'd5) begin
          left[count[1:0]-2'd1] <= read_credits;
          has_credits <= has_credits || read_credits != 0;
        end
        if (count == 9'd4 + {6'b0, p.hashes[2:0]}) step <= DECIDE;
      end
      DECIDE: begin
        spent <= '0;
        cost <= !to_high ? '1 : p.credits_in_bytes[0] ? {16'b0, size} : 32'd1;
        step <= to_high || (to_low && !p.low_keeps_credits[0]) ? SPEND : IDLE;
        enqueue_done <= 1'b1;
        enqueue_queue <= to_high ? {1'b0, high} : to_low ? {1'b0, !high} : HCF_NONE[1:0];
        if (to_high || to_low) begin
          packets[to_high?high : !high] <= packets[to_high?high : !high] + 32'd1;
          bytes[to_high?high : !high]   <= bytes[to_high?high : !high] + {24'b0, size};
        end
      end
      default: begin
        memory[flow_bin[spent]] <= {epoch, left[spent] > cost ? left[spent] - cost : 32'd0};
        spent <= spent + 2'd1;
        if ({1'b0, spent} + 3'd1 == p.hashes[2:0]) step <= IDLE;
      end
    endcase
    if (begins) begin
      epoch <= epoch + 32'd1;
      multiplier <= random_next;
      offset <= random_after;
      random <= random_after;
      is_due <= 1'b0;
      if (p.swap[0] && (is_empty || departed_last) && step != START) high <= !high;
    end
    if (rst) begin
      step <= CLEAR;
      count <= '0;
      bytes <= '0;
      packets <= '0;
      epoch <= '0;
      high <= 1'b0;
      random <= seed != 0 ? seed : GOLDEN;
      enqueue_done <= 1'b0;
    end
  end
endmodule

`default_nettype wire
