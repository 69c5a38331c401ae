// SPDX-License-Identifier: Apache-2.0
// Stores frames until all of one is known, then passes it on; a frame without room or marked bad is
// forgotten as a whole. The input never waits.
//
// `kept` or `lost` follows a frame's last word by a clock, as the parser's header does. Latency: 3
// clocks from the last word to the first word out; then one word per clock.
`default_nettype none

module frame_store #(
    parameter int unsigned WIDTH  = 64,
    parameter int unsigned WORDS  = 4096,  // a power of two; at least two of the longest frames
    parameter int unsigned FRAMES = 512    // no more are kept at a time; a power of two
) (
    input  wire logic               clk,
    input  wire logic               rst,
    input  wire logic [  WIDTH-1:0] s_tdata,
    input  wire logic [WIDTH/8-1:0] s_tkeep,
    input  wire logic               s_tlast,
    input  wire logic               s_tvalid,
    input  wire logic               is_bad,    // at s_tlast: forget this frame
    output logic                    kept,
    output logic                    lost,
    output logic      [  WIDTH-1:0] m_tdata,
    output logic      [WIDTH/8-1:0] m_tkeep,
    output logic                    m_tlast,
    output logic                    m_tvalid,
    input  wire logic               m_tready
);
  localparam int unsigned BITS = $clog2(WORDS);
  localparam int unsigned WORD_BITS = WIDTH + WIDTH / 8 + 1;

  if (WORDS != 1 << BITS) begin : g_bad_size
    $fatal(1, "WORDS must be a power of two");
  end

  // Memory blocks of 18 kb next to each other; one behind another would need a multiplexer.
  localparam int unsigned BLOCK_BITS = WORDS > 16384 ? 1 : (WORDS > 2048 ? 16384 : 18432) / WORDS;
  localparam int unsigned SLICE = BLOCK_BITS < WORD_BITS ? BLOCK_BITS : WORD_BITS;
  localparam int unsigned SLICES = (WORD_BITS + SLICE - 1) / SLICE;

  // One bit more than an address: full and empty differ. Frames are complete up to `complete`.
  logic [BITS:0] complete, written, read_at, used;
  logic [$clog2(FRAMES):0] kept_frames, left_frames;
  logic [WORD_BITS-1:0] fetched;
  logic is_full, is_crowded, overflows, reads, is_fetched, advances;
  logic [SLICES*SLICE-1:0] stored, fetched_bits;

  assign used = written - read_at;
  assign is_crowded = kept_frames - left_frames == FRAMES[$clog2(FRAMES):0];
  assign advances = !m_tvalid || m_tready;
  assign reads = read_at != complete && (!is_fetched || advances);

  assign stored = (SLICES * SLICE)'({s_tlast, s_tkeep, s_tdata});
  assign fetched = fetched_bits[WORD_BITS-1:0];
  for (genvar i = 0; i < SLICES; i++) begin : g_slice
    // Nothing is read where it is written in the same clock.
    (* no_rw_check *)
    logic [SLICE-1:0] memory[WORDS];
    always_ff @(posedge clk) begin
      if (s_tvalid && !is_full) memory[written[BITS-1:0]] <= stored[SLICE*i+:SLICE];
      if (reads) fetched_bits[SLICE*i+:SLICE] <= memory[read_at[BITS-1:0]];
    end
  end

  always_ff @(posedge clk) begin
    kept <= 1'b0;
    lost <= 1'b0;
    // Known before the word comes, so a word that is read now still takes its room.
    is_full <= used == WORDS[BITS:0];
    if (s_tvalid) begin
      if (!is_full) begin
        written <= written + 1'b1;
        is_full <= used == WORDS[BITS:0] - 1'b1;
      end else overflows <= 1'b1;
      if (s_tlast) begin
        overflows <= 1'b0;
        if (is_full || is_crowded || overflows || is_bad) begin
          is_full <= complete - read_at == WORDS[BITS:0];
          written <= complete;
          lost <= 1'b1;
        end else begin
          complete <= written + 1'b1;
          kept_frames <= kept_frames + 1'b1;
          kept <= 1'b1;
        end
      end
    end
    if (m_tvalid && m_tready && m_tlast) left_frames <= left_frames + 1'b1;
    if (reads) read_at <= read_at + 1'b1;
    if (!is_fetched || advances) is_fetched <= reads;
    if (advances) {m_tvalid, m_tlast, m_tkeep, m_tdata} <= {is_fetched, fetched};
    if (rst) begin
      complete <= '0;
      kept_frames <= '0;
      left_frames <= '0;
      written <= '0;
      read_at <= '0;
      overflows <= 1'b0;
      is_full <= 1'b0;
      is_fetched <= 1'b0;
      m_tvalid <= 1'b0;
      kept <= 1'b0;
      lost <= 1'b0;
    end
  end
endmodule

`default_nettype wire
