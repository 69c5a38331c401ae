// SPDX-License-Identifier: Apache-2.0
// A port's output: decides what joins its queue, keeps the frames, and sends them.
//
// Frames leave in the order in which they were admitted, so this is an output queue, though each
// input has a memory of its own: four inputs may write in the same clock. With HCF there are two
// such queues. A frame may leave while its end still arrives; then it never runs dry, as inputs send
// a word in every clock. Latency: none to decide, one frame per clock (HCF: 42 + hashes); 4 from a
// word in to a word out of an empty queue.
`default_nettype none

module output_port
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned WIDTH        = 64,
    parameter int unsigned INPUTS       = 4,
    parameter int unsigned BUFFER_BYTES = 65536,  // a power of two
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
    // Whether the scheme drops it.
    output logic [31:0] packet_bytes,
    output logic is_control,
    input wire logic drops,
    // Words of the frames granted, in this order; there is always room.
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
    output logic dropped,  // by the scheme
    output logic lost  // for lack of room
);
  localparam int unsigned INPUT_BITS = $clog2(INPUTS);
  localparam int unsigned WORD_BITS = WIDTH + WIDTH / 8 + 1;
  localparam int unsigned WORDS = BUFFER_BYTES / (WIDTH / 8);
  localparam int unsigned WORD_COUNT_BITS = $clog2(WORDS) + 1;
  localparam int unsigned QUEUES = HAS_HCF ? 2 : 1;
  localparam int unsigned FRAMES = BUFFER_BYTES / 32;  // no frame is shorter
  localparam int unsigned KEY_CLOCKS = 21;
  localparam logic [7:0] CONTROL = TCP_FLAG_SYN[7:0] | TCP_FLAG_FIN[7:0] | TCP_FLAG_RST[7:0];

  typedef struct packed {
    logic [INPUT_BITS-1:0] from;
    departure_t                  d;
  } entry_t;

  // One request is decided at a time, in turn: at once, or with HCF after these steps.
  typedef enum logic [2:0] {
    CHOOSE,
    KEY,
    ADMIT,
    WAIT
  } step_e;
  step_e step;
  logic [INPUT_BITS-1:0] chosen, chosen_before, turn;
  logic [4:0] waited;
  frame_t frame;
  logic is_drained, is_draining, is_hcf, has_choice;

  always_comb begin
    has_choice = 1'b0;
    chosen = chosen_before;
    if (step == CHOOSE)
      for (int unsigned i = 0; i < INPUTS; i++)
      if (!has_choice && request[turn+INPUT_BITS'(i)]) begin
        has_choice = !is_draining;
        chosen = turn + INPUT_BITS'(i);
      end
  end
  assign frame = frames[chosen];

  // Room for the frame's bytes in the buffer, and for its words in the memories of its input.
  logic [QUEUES-1:0][INPUTS-1:0][WORD_COUNT_BITS-1:0] held_words;
  logic [15:0] frame_words;
  logic [QUEUES-1:0] has_words;
  logic fits, accepts, decides;
  logic [1:0] hcf_queue;
  logic hcf_done, to_queue;

  assign packet_bytes = {16'b0, frame.bytes};
  // SYN, FIN, RST and pure ACKs; what is not TCP counts as data.
  assign is_control   = frame.is_tcp && ((frame.flags & CONTROL) != 0 || frame.payload == 0);
  assign frame_words  = (frame.bytes + WIDTH[15:0] / 16'd8 - 16'd1) >> $clog2(WIDTH / 8);
  always_comb
    for (int unsigned q = 0; q < QUEUES; q++)
      has_words[q] = {1'b0, frame_words} + 17'(held_words[q][chosen]) <= 17'(WORDS);
  assign fits = {1'b0, queue_bytes} + {17'b0, frame.bytes} <= 33'(BUFFER_BYTES) && has_words == '1;
  assign decides = step == CHOOSE ? has_choice && (!is_hcf || !fits) : step == WAIT && hcf_done;
  assign accepts = fits && (is_hcf ? step == WAIT && !hcf_queue[1] : !drops);
  assign to_queue = is_hcf && hcf_queue[0];
  assign granted = decides ? INPUTS'(1) << chosen : '0;

  logic [1:0] next_queue;
  logic hcf_ready, left_pending, send_queue;
  if (HAS_HCF) begin : g_hcf
    logic [31:0] key, key_seed, seed_used;
    logic [1:0] op_kind;
    logic op_valid, hcf_rst, left_queue, tick_pending;
    logic [15:0] left_bytes;

    // The key is made again if the period changed meanwhile.
    assign op_valid = left_pending || tick_pending || (step == ADMIT && seed_used == key_seed);
    assign op_kind  = left_pending ? 2'd1 : tick_pending ? 2'd2 : 2'd0;

    hcf_key flow_key (
        .clk,
        .seed(key_seed),
        .source(frame.is_ip ? frame.source : '0),
        .destination(frame.is_ip ? frame.destination : '0),
        .source_port(frame.is_tcp ? frame.source_port : '0),
        .destination_port(frame.is_tcp ? frame.destination_port : '0),
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
        .op_bytes(left_pending ? left_bytes : frame.bytes),
        .enqueue_done(hcf_done),
        .enqueue_queue(hcf_queue),
        .next_queue,
        .key_seed
    );

    always_ff @(posedge clk) begin
      waited <= waited + 5'd1;
      chosen_before <= chosen;
      case (step)
        CHOOSE: begin
          waited <= '0;
          seed_used <= key_seed;
          if (has_choice && !decides) step <= KEY;
        end
        KEY: if (waited == KEY_CLOCKS[4:0] - 5'd1) step <= ADMIT;
        ADMIT:
        if (seed_used != key_seed) step <= CHOOSE;
        else if (op_kind == 2'd0 && hcf_ready) step <= WAIT;
        default: if (hcf_done) step <= CHOOSE;
      endcase

      if (hcf_ready && left_pending) left_pending <= 1'b0;
      if (hcf_ready && op_kind == 2'd2) tick_pending <= 1'b0;
      if (tick && is_hcf) tick_pending <= 1'b1;
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
      end
      if (rst) begin
        step   <= CHOOSE;
        is_hcf <= 1'b0;
      end
    end
  end else begin : g_no_hcf
    assign step = CHOOSE;
    assign {chosen_before, waited, is_hcf, hcf_done, hcf_ready, hcf_queue} = '0;
    assign {next_queue, left_pending} = '0;
  end

  always_ff @(posedge clk) begin
    if (decides) turn <= chosen + 1'b1;
    dropped <= decides && !is_hcf && fits && drops;
    lost <= decides && !accepts && !(!is_hcf && fits && drops);
    if (prepare) is_draining <= 1'b1;
    else if (is_drained && step == CHOOSE) is_draining <= 1'b0;
    if (rst) begin
      turn <= '0;
      is_draining <= 1'b0;
    end
  end

  // Where the words of each input's frames go, in order of the decisions.
  logic [QUEUES-1:0][INPUTS-1:0] word_valid, word_pop;
  logic [QUEUES-1:0][INPUTS-1:0][WORD_BITS-1:0] word;
  for (genvar i = 0; i < INPUTS; i++) begin : g_input
    logic goes, goes_queue, has_decision;
    fifo #(
        .BITS (2),
        .DEPTH(4)
    ) decisions (
        .clk,
        .rst,
        .push (decides && chosen == i),
        .value({accepts, to_queue}),
        .valid(has_decision),
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

      always_ff @(posedge clk) begin
        held_words[q][i] <= held_words[q][i] - WORD_COUNT_BITS'(word_pop[q][i]);
        if (granted[i] && accepts && to_queue == q)
          held_words[q][i] <= held_words[q][i] + frame_words[WORD_COUNT_BITS-1:0] -
              WORD_COUNT_BITS'(word_pop[q][i]);
        if (rst) held_words[q][i] <= '0;
      end
    end
  end

  // The order of the frames in each queue.
  entry_t [QUEUES-1:0] first;
  entry_t admitted, sending;
  logic [QUEUES-1:0] has_frame, takes;
  assign admitted = {chosen, frame.bytes, frame.is_tcp, frame.flags, frame.payload};
  for (genvar q = 0; q < QUEUES; q++) begin : g_order
    ring #(
        .BITS ($bits(entry_t)),
        .WORDS(FRAMES)
    ) order (
        .clk,
        .rst,
        .push (decides && accepts && to_queue == q),
        .value(admitted),
        .valid(has_frame[q]),
        .head (first[q]),
        .pop  (takes[q])
    );
  end

  // Sending: the next frame begins in the clock after the last word of the one before; with HCF
  // once the departure of that is counted.
  logic is_sending, next, can_take, ends, moves, has_word;
  logic [WORD_BITS-1:0] send_word;
  assign next = is_hcf && next_queue[0];
  assign has_word = is_sending && word_valid[send_queue][sending.from];
  assign send_word = word[send_queue][sending.from];
  assign moves = has_word && (!m_tvalid || m_tready);
  assign ends = moves && send_word[WORD_BITS-1];
  assign can_take = is_hcf ? !is_sending && !departed && !left_pending && hcf_ready &&
      !next_queue[1] : !is_sending || ends;
  always_comb begin
    takes = '0;
    takes[next] = can_take && has_frame[next];
    word_pop = '0;
    word_pop[send_queue][sending.from] = moves;
  end
  assign is_drained = queue_bytes == 0 && !departed && !left_pending;

  always_ff @(posedge clk) begin
    departed <= ends;
    if (ends) departure <= sending.d;
    if (ends) is_sending <= 1'b0;
    if (takes != 0) begin
      is_sending <= 1'b1;
      send_queue <= next;
      sending <= first[next];
    end
    if (!m_tvalid || m_tready) begin
      m_tvalid <= has_word;
      {m_tlast, m_tkeep, m_tdata} <= send_word;
    end
    queue_bytes <= queue_bytes + (decides && accepts ? {16'b0, frame.bytes} : '0) -
        (ends ? {16'b0, sending.d.bytes} : '0);
    if (rst) begin
      departed <= 1'b0;
      is_sending <= 1'b0;
      m_tvalid <= 1'b0;
      queue_bytes <= '0;
    end
  end
endmodule

`default_nettype wire
