// SPDX-License-Identifier: Apache-2.0
// No frame is lost, repeated or mixed under back-pressure. A word of any one frame is followed: it
// leaves in its place among the words of kept frames, unchanged, and no word leaves that was not
// kept. The store is small here (4 words), so that frames overflow it in few clocks. Numbers wrap:
// fewer words wait than there are numbers.
module frame_store_formal (
    input logic       clk,
    input logic       rst,
    input logic [7:0] s_tdata,
    input logic       s_tlast,
    input logic       s_tvalid,
    input logic       is_bad,
    input logic       m_tready,
    input logic [3:0] followed   // number of the word among all that were kept, any constant
);
  logic kept, lost, m_tlast, m_tvalid;
  logic [7:0] m_tdata;
  logic m_tkeep;

  frame_store #(
      .WIDTH(8),
      .WORDS(4)
  ) dut (
      .clk,
      .rst,
      .s_tdata,
      .s_tkeep(1'b1),
      .s_tlast,
      .s_tvalid,
      .is_bad,
      .kept,
      .lost,
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_tvalid,
      .m_tready
  );

  logic is_first = 1;
  logic [3:0] held;  // the constant
  logic [3:0] kept_words, frame_words, left_words;
  logic [9:0] word;  // the one followed, as it entered

  // The frame that ended a clock ago counts already, if it was kept.
  logic ended = 0;
  logic [3:0] ended_words, base, waiting, place;
  assign base = kept_words + (kept ? ended_words : 4'd0);
  assign waiting = base - left_words;  // words of kept frames
  assign place = held - left_words;

  always_ff @(posedge clk) begin
    is_first <= 0;
    ended <= s_tvalid && s_tlast && !rst;
    ended_words <= frame_words + 4'd1;
    if (is_first) begin
      assume (rst);
      held <= followed;
    end
    if (rst) begin
      kept_words  <= '0;
      frame_words <= '0;
      left_words  <= '0;
    end else if (!is_first) begin
      if (kept) kept_words <= base;
      if (s_tvalid) begin
        if (base + frame_words == held) word <= {s_tlast, 1'b1, s_tdata};
        frame_words <= s_tlast ? '0 : frame_words + 4'd1;
        assume (frame_words < 4'd6);
      end
      if (m_tvalid && m_tready) left_words <= left_words + 4'd1;

      // `kept` and `lost` follow the last word by a clock; exactly one of them does.
      assert (!(kept && lost));
      assert (ended == (kept || lost));
      assert (!m_tvalid || waiting != 0);
      if (m_tvalid && place == 0) assert ({m_tlast, m_tkeep, m_tdata} == word);

      // What makes it true: where the words are, those of kept frames and of the one that enters.
      assert (frame_words <= 4'd6);
      assert (waiting == 4'(m_tvalid) + 4'(dut.is_fetched) + 4'(3'(dut.complete - dut.read_at)));
      assert (3'(dut.complete - dut.read_at) <= 3'd4);
      assert (3'(dut.written - dut.read_at) <= 3'd4);
      assert (dut.is_full || 3'(dut.written - dut.read_at) != 3'd4);
      assert (3'(dut.complete - dut.read_at) <= 3'(dut.written - dut.read_at));
      assert (dut.complete == base[2:0]);
      if (dut.overflows)
        assert (frame_words != 0);
        else assert ({1'b0, 3'(dut.written - dut.complete)} == frame_words);
      if (place < waiting && !(m_tvalid && place == 0)) begin
        if (dut.is_fetched && place == 4'(m_tvalid))
          assert (dut.fetched == word);
          else assert (dut.g_slice[0].memory[held[1:0]] == word);
      end
      if (place >= waiting && place - waiting < frame_words && !dut.overflows)
        assert (dut.g_slice[0].memory[held[1:0]] == word);
    end
  end
endmodule
