// SPDX-License-Identifier: Apache-2.0
// No word is lost, repeated or overtaken in a queue under back-pressure: a word of any one number
// leaves as that number, unchanged, and none leaves that did not enter. Numbers wrap: far fewer words
// wait than there are numbers.
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
  logic [4:0] waiting, place;  // words in the queue; those before the one followed
  logic [4:0] held_words;
  assign held_words = 5'(dut.is_held[0]) + 5'(dut.is_held[1]);
  assign waiting = pushed - popped;
  assign place = held - popped;

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
      assume (!push || waiting < 5'd4);  // the user keeps it from overflowing
      assume (!pop || valid);
      idle <= valid || waiting == 0 ? '0 : idle + 3'd1;
      if (push) begin
        pushed <= pushed + 5'd1;
        if (pushed == held) data <= value;
      end
      if (pop) popped <= popped + 5'd1;
      assert (!valid || waiting != 0);
      if (valid && place == 0) assert (head == data);
      assert (idle < 3'd3);  // a word that waits comes to the head

      // What makes it true: where the words are.
      assert (waiting <= 5'd4);
      assert (dut.written == pushed[2:0]);
      assert (waiting == held_words + 5'(dut.is_fetched) + {2'b0, 3'(dut.written - dut.read_at)});
      assert (valid || dut.is_held == 0);
      assert ((dut.next_in != dut.next_out) == (held_words == 5'd1));
      assert (dut.has_more == (dut.written != dut.read_at));
      if (place < waiting && !(valid && place == 0)) begin
        if (place < held_words)
          assert (dut.held[!dut.next_out] == data);
          else if (dut.is_fetched && place == held_words)
            assert (dut.fetched == data);
            else assert (dut.memory[held[1:0]] == data);
      end
    end
  end
endmodule
