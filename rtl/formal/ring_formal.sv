// SPDX-License-Identifier: Apache-2.0
// No word is lost, repeated or overtaken in a queue under back-pressure: a word of any one number
// leaves as that number, unchanged, and none leaves that did not enter.
module ring_formal (
    input logic       clk,
    input logic       rst,
    input logic       push,
    input logic [3:0] value,
    input logic       pop,
    input logic [4:0] followed  // number of the word, any constant
);
  logic valid;
  logic [3:0] head;

  ring #(
      .BITS (4),
      .WORDS(4)
  ) dut (
      .clk,
      .rst,
      .push,
      .value,
      .valid,
      .head,
      .pop
  );

  logic is_first = 1;
  logic [4:0] held;  // the constant
  logic [4:0] pushed, popped;
  logic [3:0] data;
  logic [2:0] idle;  // clocks in which words wait, but none is at the head

  always_ff @(posedge clk) begin
    is_first <= 0;
    if (is_first) begin
      assume (rst);
      held <= followed;
    end
    if (rst) begin
      pushed <= '0;
      popped <= '0;
      idle   <= '0;
    end else begin
      assume (!push || pushed - popped < 5'd4);  // the user keeps it from overflowing
      assume (!pop || valid);
      assume (pushed < 5'd30);  // before the numbers wrap
      idle <= valid || pushed == popped ? '0 : idle + 3'd1;
      if (push) begin
        pushed <= pushed + 5'd1;
        if (pushed == held) data <= value;
      end
      if (pop) popped <= popped + 5'd1;
      assert (popped <= pushed);
      assert (!valid || popped < pushed);
      if (valid && popped == held) assert (head == data);
      assert (idle < 3'd3);  // a word that waits comes to the head
    end
  end
endmodule
