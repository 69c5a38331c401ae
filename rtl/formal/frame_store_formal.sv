// SPDX-License-Identifier: Apache-2.0
// No frame is lost, repeated or mixed under back-pressure. A word of any one frame is followed: it
// leaves in its place among the words of kept frames, unchanged, and no word leaves that was not
// kept. The store is small here (4 words), so that frames overflow it in few clocks.
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
  logic [7:0] data;
  logic last;

  // The frame that ended a clock ago counts already, if it was kept.
  logic ended = 0;
  logic [3:0] ended_words, base;
  assign base = kept_words + (kept ? ended_words : 4'd0);

  always_ff @(posedge clk) begin
    is_first <= 0;
    if (is_first) begin
      assume (rst);
      held <= followed;
    end
    if (rst) begin
      kept_words  <= 0;
      frame_words <= 0;
      left_words  <= 0;
    end else begin
      if (kept) kept_words <= base;
      assume (kept_words < 4'd8);  // before the numbers wrap
      if (s_tvalid) begin
        if (base + frame_words == held) {last, data} <= {s_tlast, s_tdata};
        frame_words <= frame_words + 1;
        assume (frame_words < 4'd6);
        if (s_tlast) frame_words <= 0;
      end
      // `kept` and `lost` follow the last word by a clock; exactly one of them does.
      assert (!(kept && lost));
      if (m_tvalid && m_tready) begin
        left_words <= left_words + 1;
        if (left_words == held) assert ({m_tlast, m_tdata} == {last, data});
      end
    end
  end

  always_ff @(posedge clk) begin
    ended <= s_tvalid && s_tlast && !rst;
    ended_words <= frame_words + 1;
    if (!rst && !is_first) begin
      assert (ended == (kept || lost));
      assert (left_words <= base);
    end
  end
endmodule
