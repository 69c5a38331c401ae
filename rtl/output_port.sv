// SPDX-License-Identifier: Apache-2.0
// A port's output: decides what joins its queue, keeps the frames, and sends them.
//
// Frames leave in the order in which they were admitted, so this is an output queue, though each
// input has a memory of its own: four inputs may write in the same clock. With HCF there are two
// such queues. A frame may leave while its end still arrives; then it never runs dry, as inputs send
// a word in every clock. A request is granted at once, and decided three clocks later, one per clock;
// the frame's words come later still. With HCF the grant follows the decision, 40 + hashes clocks
// later. Latency: 4 from a word in to a word out of an empty queue.
`default_nettype none

module output_port
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned WIDTH        = 64,
    parameter int unsigned INPUTS       = 4,
    parameter int unsigned BUFFER_BYTES = DEFAULT_BUFFER_BYTES,  // a power of two, 1 kB to 1 GB
    parameter bit          HAS_HCF      = 1
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic prepare,  // empties the queue, then HCF restarts
    input wire logic wants_hcf,  // from the next preparation on
    input wire hcf_params_t p,
    input wire logic [31:0] seed,
    input wire logic tick,  // of HCF's period
    // The next frame of each input: a request until it is granted.
    input wire logic [INPUTS-1:0] request,
    input wire frame_t [INPUTS-1:0] frames,
    output logic [INPUTS-1:0] granted,  // in the same clock
    // Whether the scheme drops it, of the one granted two clocks before.
    output logic [31:0] packet_bytes,
    output logic is_control,
    input wire logic drops,
    // Words of the frames granted, in this order, at least 5 clocks later; there is always room.
    input wire logic [INPUTS-1:0][WIDTH-1:0] s_tdata,
    input wire logic [INPUTS-1:0][WIDTH/8-1:0] s_tkeep,
    input wire logic [INPUTS-1:0] s_tlast,
    input wire logic [INPUTS-1:0] s_tvalid,  // of a frame for this port
    output logic [WIDTH-1:0] m_tdata,
    output logic [WIDTH/8-1:0] m_tkeep,
    output logic m_tlast,
    output logic m_tvalid,
    input wire logic m_tready,
    // Events and the state that others see.
    output logic [31:0] queue_bytes,
    output logic departed,
    output departure_t departure,
    output logic [INPUTS-1:0] joined,  // with its last word, a frame of this input
    output logic dropped,  // by the scheme
    output logic lost  // for lack of room, or while the queue empties
);
  if (BUFFER_BYTES < 1024 || BUFFER_BYTES > 1 << 30 ||
      (BUFFER_BYTES & (BUFFER_BYTES - 1)) != 0) begin : g_bad_buffer
    $fatal(1, "BUFFER_BYTES must be a power of two from 1024 to 1073741824");
  end

  localparam int unsigned WORD_BITS = WIDTH + WIDTH / 8 + 1;
  localparam int unsigned WORDS = BUFFER_BYTES / (WIDTH / 8);
  localparam int unsigned WORD_COUNT_BITS = $clog2(WORDS) + 1;
  localparam int unsigned BYTE_COUNT_BITS = $clog2(BUFFER_BYTES) + 1;
  localparam int unsigned QUEUES = HAS_HCF ? 2 : 1;
  localparam int unsigned FRAMES = BUFFER_BYTES / 32;  // no frame is shorter
  localparam int unsigned KEY_CLOCKS = 21;
  localparam logic [7:0] CONTROL = TCP_FLAG_SYN[7:0] | TCP_FLAG_FIN[7:0] | TCP_FLAG_RST[7:0];

  typedef struct packed {
    logic [INPUTS-1:0] from;
    departure_t              d;
  } entry_t;

  // One request is chosen at a time, in turn: those behind the last one first. With HCF the next one
  // is chosen after these steps.
  typedef enum logic [1:0] {
    CHOOSE,
    KEY,
    ADMIT,
    WAIT
  } step_e;
  step_e step;
  logic [INPUTS-1:0] pick, pick_1, behind;
  logic may_choose, refuses, is_drained, is_draining, is_hcf, hcf_decides, hcf_accepts, hcf_to;

  always_comb begin
    pick = '0;
    for (int i = INPUTS - 1; i >= 0; i--) if (request[i]) pick = INPUTS'(1) << i;
    for (int i = INPUTS - 1; i >= 0; i--) if (request[i] && behind[i]) pick = INPUTS'(1) << i;
  end
  // While the queue empties before a preparation, frames are granted and lost: one that waits for its
  // grant stops its input, and a queue that cannot be sent would stop other ports.
  assign may_choose = step == CHOOSE;
  assign refuses = is_draining && may_choose;
  assign granted = refuses ? pick : is_hcf ? (hcf_decides ? pick_1 : '0) : may_choose ? pick : '0;

  // 1: the frame. 2: its words, and whether they fit, whatever is decided of the frame before. 3: the
  // decision. 4: it is in force.
  logic [INPUTS-1:0] pick_2, pick_3, pick_4;
  logic valid_1, valid_2, valid_3, refuses_1, wanted_2, wanted_3, drops_3, to_2, to_3, to_4;
  logic accepts, accepts_4;
  frame_t frame_1;
  entry_t entry_2, entry_3, entry_4;
  logic [15:0] words_1;
  logic [WORD_COUNT_BITS-1:0] words_2, less_3, less_one_3;
  logic is_oversize_2, is_oversize_3, fits, fits_before, is_empty, left_pending;

  assign packet_bytes = {16'b0, entry_2.d.bytes};
  // SYN, FIN, RST and pure ACKs; what is not TCP counts as data.
  assign is_control = entry_2.d.is_tcp &&
      ((entry_2.d.flags & CONTROL) != 0 || entry_2.d.payload == 0);
  assign words_1 = (frame_1.bytes + WIDTH[15:0] / 16'd8 - 16'd1) >> $clog2(WIDTH / 8);

  always_ff @(posedge clk) begin
    if (step == CHOOSE) begin
      pick_1  <= pick;
      frame_1 <= '0;
      for (int unsigned i = 0; i < INPUTS; i++) if (pick[i]) frame_1 <= frames[i];
    end
    valid_1   <= granted != 0 && (!is_hcf || refuses);
    refuses_1 <= refuses;
    for (int unsigned i = 0; i < INPUTS; i++)
    if (granted[i]) for (int unsigned k = 0; k < INPUTS; k++) behind[k] <= k > i;

    valid_2 <= valid_1 || hcf_decides;
    wanted_2 <= (valid_1 && !refuses_1) || hcf_accepts;
    to_2 <= hcf_to;
    pick_2 <= pick_1;
    entry_2 <= {pick_1, frame_1.bytes, frame_1.is_tcp, frame_1.flags, frame_1.payload};
    words_2 <= WORD_COUNT_BITS'(words_1);
    is_oversize_2 <= 32'(words_1) > WORDS;

    valid_3 <= valid_2;
    wanted_3 <= wanted_2;
    to_3 <= to_2;
    drops_3 <= drops && !is_hcf;
    pick_3 <= pick_2;
    entry_3 <= entry_2;
    less_3 <= -words_2;
    less_one_3 <= WORD_COUNT_BITS'(1) - words_2;
    is_oversize_3 <= is_oversize_2;

    pick_4 <= valid_3 ? pick_3 : '0;
    accepts_4 <= accepts;
    to_4 <= to_3;
    entry_4 <= entry_3;

    dropped <= valid_3 && wanted_3 && fits && drops_3;
    lost <= valid_3 && !accepts && !(wanted_3 && fits && drops_3);
    if (prepare) is_draining <= 1'b1;
    else if (is_drained && step == CHOOSE) is_draining <= 1'b0;
    if (rst) begin
      behind <= '0;
      valid_1 <= 1'b0;
      valid_2 <= 1'b0;
      valid_3 <= 1'b0;
      pick_4 <= '0;
      is_draining <= 1'b0;
    end
  end

  // Room for the frame's bytes in the buffer, and for its words in the memories of its input. Both
  // next values are known before the decision is, and what the frame behind would leave of them: below
  // 0 if the highest bit is set.
  logic [BYTE_COUNT_BITS-1:0] room, room_without, room_with, queue, queue_without, queue_with;
  logic [BYTE_COUNT_BITS-1:0] freed_3, change_3, freed_2;
  logic [BYTE_COUNT_BITS:0] less_behind, less_both, rest_without, rest_with;
  logic [QUEUES-1:0][INPUTS-1:0][WORD_COUNT_BITS-1:0] room_words, words_without, words_with;
  logic [QUEUES-1:0][INPUTS-1:0][WORD_COUNT_BITS:0] rest_words_without, rest_words_with;
  logic [WORD_COUNT_BITS:0] less_words_behind, less_words_both;
  logic [QUEUES-1:0][INPUTS-1:0] word_pop, popped, takes_words, fits_words;
  logic [INPUTS-1:0] fits_input;
  logic fits_bytes;
  assign freed_2 = departed ? BYTE_COUNT_BITS'(departure.bytes) : '0;
  assign room_without = room + freed_3;
  assign room_with = room + change_3;
  assign rest_without = {1'b0, room} + less_behind;
  assign rest_with = {1'b0, room} + less_both;
  assign queue_without = queue - freed_3;
  assign queue_with = queue - change_3;
  always_comb begin
    fits_input = '1;
    for (int unsigned q = 0; q < QUEUES; q++) begin
      fits_input = fits_input & fits_words[q];
      for (int unsigned i = 0; i < INPUTS; i++) begin
        words_without[q][i] = room_words[q][i] + WORD_COUNT_BITS'(popped[q][i]);
        words_with[q][i] = room_words[q][i] + (popped[q][i] ? less_one_3 : less_3);
        rest_words_without[q][i] = {1'b0, room_words[q][i]} + less_words_behind +
            (WORD_COUNT_BITS + 1)'(popped[q][i]);
        rest_words_with[q][i] = {1'b0, room_words[q][i]} + less_words_both +
            (WORD_COUNT_BITS + 1)'(popped[q][i]);
      end
    end
  end
  assign fits = fits_bytes && (pick_3 & fits_input) != 0 && !is_oversize_3;
  assign accepts = valid_3 && wanted_3 && fits && !drops_3;
  always_comb
    for (int unsigned q = 0; q < QUEUES; q++)
      for (int unsigned i = 0; i < INPUTS; i++)
        takes_words[q][i] = accepts && pick_3[i] && to_3 == q[0];

  always_ff @(posedge clk) begin
    freed_3 <= freed_2;
    change_3 <= freed_2 - BYTE_COUNT_BITS'(entry_2.d.bytes);
    room <= accepts ? room_with : room_without;
    queue <= accepts ? queue_with : queue_without;
    less_behind <= (BYTE_COUNT_BITS + 1)'(freed_2) - (BYTE_COUNT_BITS + 1)'(frame_1.bytes);
    less_both <= (BYTE_COUNT_BITS + 1)'(freed_2) - (BYTE_COUNT_BITS + 1)'(entry_2.d.bytes) -
        (BYTE_COUNT_BITS + 1)'(frame_1.bytes);
    less_words_behind <= -(WORD_COUNT_BITS + 1)'(words_1);
    less_words_both <= -{1'b0, words_2} - (WORD_COUNT_BITS + 1)'(words_1);
    fits_bytes <= !(accepts ? rest_with[BYTE_COUNT_BITS] : rest_without[BYTE_COUNT_BITS]);
    fits_before <= fits;
    is_empty <= queue == 0;
    popped <= word_pop;
    for (int unsigned q = 0; q < QUEUES; q++)
    for (int unsigned i = 0; i < INPUTS; i++) begin
      room_words[q][i] <= takes_words[q][i] ? words_with[q][i] : words_without[q][i];
      fits_words[q][i] <= !(takes_words[q][i] ? rest_words_with[q][i][WORD_COUNT_BITS] :
          rest_words_without[q][i][WORD_COUNT_BITS]);
    end
    if (rst) begin
      freed_3 <= '0;
      room <= BYTE_COUNT_BITS'(BUFFER_BYTES);
      queue <= '0;
      popped <= '0;
      room_words <= {QUEUES * INPUTS{WORD_COUNT_BITS'(WORDS)}};
    end
  end
  assign queue_bytes = 32'(queue);
  // What is refused does not count, or a flood would keep the queue from being empty.
  assign is_drained = is_empty && queue == 0 && !(valid_1 && !refuses_1) &&
      !(valid_2 && wanted_2) && !(valid_3 && wanted_3) && !(pick_4 != 0 && accepts_4) &&
      !departed && !left_pending;

  logic [1:0] next_queue;
  logic hcf_ready, send_queue;
  if (HAS_HCF) begin : g_hcf
    logic [31:0] key, key_seed, seed_used;
    logic [4:0] waited;
    logic [1:0] op_kind;
    logic [1:0] hcf_queue;
    logic op_valid, hcf_rst, hcf_done, left_queue, tick_pending, ticked, may_tick;
    logic [15:0] left_bytes;

    // The key is made again if the period changed meanwhile. One tick passes for each frame, or ticks
    // that come faster than frames are decided would keep them all waiting.
    assign may_tick = tick_pending && !ticked;
    assign op_valid = left_pending || may_tick || (step == ADMIT && seed_used == key_seed);
    assign op_kind  = left_pending ? 2'd1 : may_tick ? 2'd2 : 2'd0;

    hcf_key flow_key (
        .clk,
        .start(step == KEY && waited == 0),
        .seed(key_seed),
        .source(frame_1.ip.is_ip ? frame_1.ip.source : '0),
        .destination(frame_1.ip.is_ip ? frame_1.ip.destination : '0),
        .source_port(frame_1.is_tcp ? frame_1.source_port : '0),
        .destination_port(frame_1.is_tcp ? frame_1.destination_port : '0),
        .key
    );

    hcf credits (
        .clk,
        .rst(hcf_rst),
        .p,
        .seed,
        .op_valid,
        .op_ready(hcf_ready),
        .op_kind,
        .op_key(key),
        .op_queue(left_queue),
        .op_bytes(left_pending ? left_bytes : frame_1.bytes),
        .enqueue_done(hcf_done),
        .enqueue_queue(hcf_queue),
        .next_queue,
        .key_seed
    );

    // A frame without room is none of HCF's; the room can only grow until the decision.
    logic is_lost;
    assign is_lost = step == KEY && waited == KEY_CLOCKS[4:0] - 5'd1 && !fits_before;
    assign hcf_decides = is_lost || (step == WAIT && hcf_done);
    assign hcf_accepts = step == WAIT && hcf_done && !hcf_queue[1];
    assign hcf_to = is_hcf && hcf_queue[0];

    always_ff @(posedge clk) begin
      waited <= waited + 5'd1;
      case (step)
        CHOOSE: begin
          waited <= '0;
          seed_used <= key_seed;
          if (is_hcf && may_choose && !refuses && request != 0) step <= KEY;
        end
        KEY: if (waited == KEY_CLOCKS[4:0] - 5'd1) step <= is_lost ? CHOOSE : ADMIT;
        ADMIT:
        if (seed_used != key_seed) step <= CHOOSE;
        else if (op_kind == 2'd0 && hcf_ready) step <= WAIT;
        default: if (hcf_done) step <= CHOOSE;
      endcase

      if (hcf_ready && left_pending) left_pending <= 1'b0;
      if (hcf_done || is_lost || (step == CHOOSE && request == 0)) ticked <= 1'b0;
      if (hcf_ready && op_kind == 2'd2) begin
        tick_pending <= 1'b0;
        ticked <= 1'b1;
      end
      if (tick && is_hcf && p.period != HCF_PERIOD_DYNAMIC) tick_pending <= 1'b1;
      if (departed && is_hcf) begin
        left_pending <= 1'b1;
        left_queue   <= send_queue;
        left_bytes   <= departure.bytes;
      end

      hcf_rst <= rst;
      if (is_draining && is_drained && step == CHOOSE) begin
        is_hcf  <= wants_hcf;
        hcf_rst <= 1'b1;
      end
      if (rst || hcf_rst) begin
        left_pending <= 1'b0;
        tick_pending <= 1'b0;
        ticked <= 1'b0;
      end
      if (rst) begin
        step   <= CHOOSE;
        is_hcf <= 1'b0;
      end
    end
  end else begin : g_no_hcf
    assign step = CHOOSE;
    assign {is_hcf, hcf_ready, hcf_decides, hcf_accepts, hcf_to} = '0;
    assign {next_queue, left_pending} = '0;
  end

  // Where the words of each input's frames go, in order of the decisions.
  logic [QUEUES-1:0][INPUTS-1:0] word_valid;
  logic [QUEUES-1:0][INPUTS-1:0][WORD_BITS-1:0] word;
  for (genvar i = 0; i < INPUTS; i++) begin : g_input
    logic goes, goes_queue;
    assign joined[i] = s_tvalid[i] && s_tlast[i] && goes;
    fifo #(
        .BITS (2),
        .DEPTH(4)
    ) decisions (
        .clk,
        .rst,
        .push (pick_4[i]),
        .value({accepts_4, to_4}),
        .valid(),
        .head ({goes, goes_queue}),
        .pop  (s_tvalid[i] && s_tlast[i])
    );
    for (genvar q = 0; q < QUEUES; q++) begin : g_queue
      ring #(
          .BITS (WORD_BITS),
          .WORDS(WORDS)
      ) words (
          .clk,
          .rst,
          .push (s_tvalid[i] && goes && goes_queue == q),
          .value({s_tlast[i], s_tkeep[i], s_tdata[i]}),
          .valid(word_valid[q][i]),
          .head (word[q][i]),
          .pop  (word_pop[q][i])
      );
    end
  end

  // The order of the frames in each queue.
  entry_t [QUEUES-1:0] first;
  departure_t [QUEUES-1:0] first_departure;
  logic [QUEUES-1:0][INPUTS-1:0] first_from;
  logic [QUEUES-1:0] has_frame, takes;
  for (genvar q = 0; q < QUEUES; q++) begin : g_order
    assign first_departure[q] = first[q].d;
    assign first_from[q] = first[q].from;
    ring #(
        .BITS ($bits(entry_t)),
        .WORDS(FRAMES)
    ) order (
        .clk,
        .rst,
        .push (pick_4 != 0 && accepts_4 && to_4 == q),
        .value(entry_4),
        .valid(has_frame[q]),
        .head (first[q]),
        .pop  (takes[q])
    );
  end

  output_sender #(
      .WIDTH (WIDTH),
      .INPUTS(INPUTS),
      .QUEUES(QUEUES)
  ) sender (
      .clk,
      .rst,
      .has_frame,
      .first_from,
      .first(first_departure),
      .takes,
      .word_valid,
      .word,
      .word_pop,
      .is_hcf,
      .hcf_may_take(!left_pending && hcf_ready && !next_queue[1]),
      .hcf_queue(next_queue[0]),
      .send_queue,
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_tvalid,
      .m_tready,
      .departed,
      .departure
  );
endmodule

`default_nettype wire
