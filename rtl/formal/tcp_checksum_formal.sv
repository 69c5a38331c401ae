// SPDX-License-Identifier: Apache-2.0
// The update equals recomputation: over any words, the sum of the segment with the new word and the
// new checksum is right if it was right before (RFC 1071: the sum, checksum included, is 0xffff).
// `rest` stands for the sum of all other words, so the proof is for segments of any length. It is
// never 0, which is the sum of zeros only: a TCP checksum covers the protocol's number, 6, and an IPv4
// one the version, or the length if that word changes (RFC 1624 §3: the two zeros).
module tcp_checksum_formal (
    input logic        clk,
    input logic [15:0] rest,
    input logic [15:0] checksum,
    input logic [15:0] old_word,
    input logic [15:0] new_word
);
  logic [15:0] updated;

  tcp_checksum dut (
      .clk,
      .checksum,
      .old_word,
      .new_word,
      .updated
  );

  function automatic logic [15:0] add(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    add = sum[15:0] + {15'b0, sum[16]};
  endfunction

  logic [1:0] was_right = 0;
  logic [1:0][15:0] sum_before;  // of the rest and the new word
  always_ff @(posedge clk) begin
    was_right  <= {was_right[0], rest != 0 && add(add(rest, old_word), checksum) == 16'hffff};
    sum_before <= {sum_before[0], add(rest, new_word)};
    if (was_right[1]) assert (add(sum_before[1], updated) == 16'hffff);
  end
endmodule
