// SPDX-License-Identifier: Apache-2.0
// Sends the frames of an output in their order, from the memories of its inputs and queues.
//
// The next frame begins in the clock after the last word of the one before; with HCF once the
// departure of that is counted. Latency: 1 clock from a word at a memory's head.
`default_nettype none

module output_sender
  import types_pkg::*;
#(
    parameter int unsigned WIDTH  = 64,
    parameter int unsigned INPUTS = 4,
    parameter int unsigned QUEUES = 1
) (
    input wire logic clk,
    input wire logic rst,
    // The first frame of each queue, and the words.
    input wire logic [QUEUES-1:0] has_frame,
    input wire logic [QUEUES-1:0][INPUTS-1:0] first_from,
    input wire departure_t [QUEUES-1:0] first,
    output logic [QUEUES-1:0] takes,
    input wire logic [QUEUES-1:0][INPUTS-1:0] word_valid,
    input wire logic [QUEUES-1:0][INPUTS-1:0][WIDTH+WIDTH/8:0] word,  // the highest bit: tlast
    output logic [QUEUES-1:0][INPUTS-1:0] word_pop,
    // With HCF: the queue that may send, if one may.
    input wire logic is_hcf,
    input wire logic hcf_may_take,
    input wire logic hcf_queue,
    output logic send_queue,
    output logic [WIDTH-1:0] m_tdata,
    output logic [WIDTH/8-1:0] m_tkeep,
    output logic m_tlast,
    output logic m_tvalid,
    input wire logic m_tready,
    output logic departed,
    output departure_t departure
);
  logic [QUEUES-1:0][INPUTS-1:0] from;  // of the frame that leaves; none: 0
  departure_t sending;
  logic [QUEUES-1:0][INPUTS-1:0] last;
  logic [QUEUES-1:0] begins;  // its first frame, as soon as none leaves
  logic is_idle, is_free, has_room, moves, ends, may_take, queue;
  logic [WIDTH+WIDTH/8:0] send_word;

  assign has_room = !m_tvalid || m_tready;
  assign moves = (from & word_valid) != 0 && has_room;
  assign ends = (from & word_valid & last) != 0 && has_room;
  assign word_pop = has_room ? from & word_valid : '0;
  assign is_free = is_idle || ends;
  assign takes = is_free ? begins : '0;

  always_comb begin
    send_word = '0;
    for (int unsigned q = 0; q < QUEUES; q++)
    for (int unsigned i = 0; i < INPUTS; i++) begin
      last[q][i] = word[q][i][WIDTH+WIDTH/8];
      send_word  = send_word | (from[q][i] ? word[q][i] : '0);
    end
    for (int unsigned q = 0; q < QUEUES; q++)
    begins[q] = has_frame[q] && (is_hcf ? is_idle && may_take && queue == q[0] : q == 0);
  end

  always_ff @(posedge clk) begin
    // As of the clock before: what HCF does meanwhile is as if it came after.
    may_take <= is_idle && takes == 0 && !departed && hcf_may_take;
    queue <= hcf_queue;
    is_idle <= is_free && begins == 0;

    departed <= ends;
    if (ends) departure <= sending;
    if (is_free)
      for (int unsigned q = 0; q < QUEUES; q++) begin
        from[q] <= begins[q] ? first_from[q] : '0;
        if (begins[q]) sending <= first[q];
      end
    for (int unsigned q = 0; q < QUEUES; q++) if (takes[q]) send_queue <= q[0];
    if (has_room) begin
      m_tvalid <= moves;
      {m_tlast, m_tkeep, m_tdata} <= send_word;
    end
    if (rst) begin
      departed <= 1'b0;
      may_take <= 1'b0;
      is_idle <= 1'b1;
      from <= '0;
      m_tvalid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
