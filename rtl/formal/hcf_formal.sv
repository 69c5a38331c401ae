// SPDX-License-Identifier: Apache-2.0
// HCF loses no frame and keeps the order within a flow (HCF Theorem 1), for the periods and rules
// that the theorem names: swap, periods that end with the high queue (dynamic, ordered), frames
// without credits into the low queue, which spend what is left.
//
// Any one flow is followed, and of it any two frames, the first and the second, among more of its
// frames and those of other flows, which have any bins. The queues are counts, as `ring` keeps their
// order. The hash is any function: in each period the flow has any bins, which stay until the period
// ends. Two bins stand for all, and flows have one hash or two.
module hcf_formal
  import core_pkg::*;
(
    input logic               clk,
    input logic               rst,
    input hcf_params_t        p,
    input logic        [ 0:0] period_bins  [2],  // of the flow in a new period
    input logic               wants_enqueue,
    input logic               wants_depart,
    input logic               wants_tick,
    input logic               wants_take,
    input logic               is_flow,           // the frame is of the flow followed
    input logic               is_one,            // and it is the first or the second one
    input logic        [15:0] size
);
  localparam logic [2:0] CLEAR = 3'd0, START = 3'd1, HASH = 3'd3, DECIDE = 3'd4, SPEND = 3'd5;
  localparam logic [2:0] SETTLE = 3'd6;  // steps of `hcf`

  // What the environment does: frames are taken one at a time from the queue that may send; the
  // departure is counted before the next one is taken, as in output_sender.
  logic op_valid, op_ready, enqueue_done, is_sending, sent_queue, may_take, take_queue;
  logic [1:0] op_kind, enqueue_queue, next_queue;
  logic [31:0] key_seed;
  logic departs, enqueues, ticks, takes;
  logic was_reset = 0;
  assign departs = is_sending && wants_depart;
  assign ticks = !departs && wants_tick;
  assign enqueues = !departs && !ticks && wants_enqueue;
  assign op_valid = departs || ticks || enqueues;
  assign op_kind = departs ? 2'd1 : ticks ? 2'd2 : 2'd0;
  assign takes = may_take && !is_sending && wants_take;

  hcf #(
      .BINS(2)
  ) dut (
      .clk,
      .rst,
      .p,
      .seed(32'd1),
      .op_valid,
      .op_ready,
      .op_kind,
      .op_key(32'd0),
      .op_queue(sent_queue),
      .op_bytes(size),
      .enqueue_done,
      .enqueue_queue,
      .next_queue,
      .key_seed
  );

  // The frames: waiting nowhere, in a queue behind so many others, or gone.
  typedef enum logic [1:0] {
    NEW,
    QUEUED,
    GONE,
    DROPPED
  } place_e;
  place_e [1:0]      place;
  logic   [1:0]      in_queue;
  logic   [1:0][3:0] ahead;
  logic   [1:0][3:0] held;  // frames in each queue
  logic              is_low;  // in this period a frame of the flow went to the low queue
  logic works, is_flow_now, is_one_now;  // the enqueue in work
  logic [31:0] epoch_before;
  logic [1:0][3:0] waiting;  // frames in each queue that have not begun to leave
  always_comb
    for (int q = 0; q < 2; q++) waiting[q] = held[q] - 4'(is_sending && sent_queue == q[0]);
  logic [0:0] flow_bins[2];
  logic which;  // of the two frames is the next
  assign which = place[0] != NEW;

  always_ff @(posedge clk) begin
    was_reset <= was_reset || rst;
    if (!was_reset)
      assume (rst);
      else assume (!rst);
    assume (p == $past(p) || !was_reset);
    assume (p.period == HCF_PERIOD_DYNAMIC || p.period == HCF_PERIOD_ORDERED);
    assume (p.swap == 1 && p.drop != HCF_DROP_BOTH && p.low_keeps_credits == 0);
    assume (p.hashes == 1 || p.hashes == 2);
    assume (p.credits_in_bytes < 2);
    assume (held[0] < 4'd14 && held[1] < 4'd14);

    if (op_ready && enqueues) begin
      works <= 1'b1;
      is_flow_now <= is_flow;
      is_one_now <= is_flow && is_one && !(place[1] != NEW);
    end
    // The hash is a function while a period lasts.
    if (works && is_flow_now && dut.step == HASH) begin
      if (dut.count == 9'd12) assume (dut.scaled_11[39:32] == {7'b0, flow_bins[0]});
      if (dut.count == 9'd13) assume (dut.scaled_11[39:32] == {7'b0, flow_bins[1]});
    end
    assume (dut.scaled_11[39:33] == 0);

    // As of the clock before.
    may_take   <= op_ready && !is_sending && !next_queue[1];
    take_queue <= next_queue[0];
    if (takes) begin
      is_sending <= 1'b1;
      sent_queue <= take_queue;
      for (int i = 0; i < 2; i++)
      if (place[i] == QUEUED && in_queue[i] == take_queue) begin
        ahead[i] <= ahead[i] - 4'd1;
        if (ahead[i] == 0) place[i] <= GONE;
      end
    end
    if (op_ready && departs) begin
      is_sending <= 1'b0;
      held[sent_queue] <= held[sent_queue] - 4'd1;
    end
    if (enqueue_done) begin
      works <= 1'b0;
      if (!enqueue_queue[1]) held[enqueue_queue[0]] <= held[enqueue_queue[0]] + 4'd1;
      if (is_flow_now && enqueue_queue == {1'b0, !dut.high}) is_low <= 1'b1;
      if (is_one_now) begin
        place[which] <= enqueue_queue[1] ? DROPPED : QUEUED;
        in_queue[which] <= enqueue_queue[0];
        ahead[which] <= held[enqueue_queue[0]] - 4'(is_sending && sent_queue == enqueue_queue[0]);
      end
    end
    epoch_before <= dut.epoch;
    if (dut.epoch != epoch_before) begin
      is_low <= 1'b0;
      flow_bins <= period_bins;
    end
    if (rst) begin
      place <= {NEW, NEW};
      held <= '0;
      is_low <= 1'b0;
      works <= 1'b0;
      is_sending <= 1'b0;
      may_take <= 1'b0;
      flow_bins <= period_bins;
      epoch_before <= '0;
    end

    if (was_reset && !rst) begin
      // The theorem: the second never leaves before the first.
      assert (!(place[1] == GONE && place[0] == QUEUED));
      // No frame is lost: the counts are those of the queues, and between operations, while a frame
      // is in one, a queue may send: the high one first.
      for (int q = 0; q < 2; q++)
      assert (dut.packets[q] == 32'(held[q]) + 32'(enqueue_done && enqueue_queue == q[1:0]));
      if (op_ready)
        assert (next_queue == (held[dut.high] != 0 ? {1'b0, dut.high} :
            held[!dut.high] != 0 ? {1'b0, !dut.high} : HCF_NONE[1:0]));

      // What makes it true: a frame in the low queue means that the flow has no credits left, and
      // the first frame is never behind the second.
      for (int i = 0; i < 2; i++)
      if (place[i] == QUEUED) begin
        assert (ahead[i] < waiting[in_queue[i]]);
        if (in_queue[i] != dut.high) assert (is_low);
      end
      if (place[0] == QUEUED && place[1] == QUEUED)
        assert (in_queue[0] == in_queue[1] ? ahead[0] < ahead[1] : in_queue[0] == dut.high);
      for (int i = 0; i < 2; i++)
      if (op_ready && is_low && i < p.hashes)
        assert (dut.memory[flow_bins[i]] == {dut.epoch, 32'd0});

      // These states are reached, so the assertions are about something: a frame has left, was dropped,
      // waits in the high queue that was the low one when it came; the two wait in both queues.
      cover (place[0] == GONE);
      cover (place[0] == DROPPED);
      cover (place[0] == QUEUED && in_queue[0] && dut.high);
      cover (place == {QUEUED, QUEUED} && in_queue[0] != in_queue[1]);

      // States that never occur.
      assert (place[0] != NEW || place[1] == NEW);
      assert (!is_sending || held[sent_queue] != 0);
      assert (!may_take || is_sending || held[take_queue] != 0);
      assert (works == (dut.step == HASH || dut.step == DECIDE || enqueue_done));
      assert (!works || !is_one_now || (is_flow_now && place[1] == NEW));
      assert (!enqueue_done || dut.step == SPEND || dut.step == SETTLE);
      if (dut.step == CLEAR || dut.step == START)
        assert (held == 0 && place == {NEW, NEW} && !is_sending && !is_low && !enqueue_done);
      assert (dut.step != CLEAR || dut.count < 9'd2);
      assert (dut.step != HASH || dut.count <= 9'd15 + p.hashes[8:0]);
      assert (dut.step != SPEND || dut.spent < p.hashes[1:0]);
      assert (dut.step != SETTLE || dut.count <= 9'd2);
      assert (dut.step <= SETTLE);
      if (op_ready) begin
        assert (epoch_before == dut.epoch);
        for (int q = 0; q < 2; q++)
        assert (dut.is_none[q] == (held[q] == 0) && dut.is_one[q] == (held[q] == 4'd1));
      end
    end
  end
endmodule
