// SPDX-License-Identifier: Apache-2.0
// The mean of the last 32 samples of the queue's length, 0 before the first (FairQ §IV-E, AVG_32).
// core: fairq_on_sample. The caller takes a sample every 48 us. Latency: 3 clocks.
`default_nettype none

module avg_32 (
    input  wire logic        clk,
    input  wire logic        rst,     // forgets all samples
    input  wire logic        sample,
    input  wire logic [31:0] value,
    output logic      [31:0] mean
);
  logic [31:0] ring[32];
  logic [31:0] is_filled;  // a memory cannot be cleared at once: slots count as 0 until written
  logic [4:0] slot;
  logic [36:0] sum, change;
  logic [31:0] oldest, latest;  // 0 without a sample

  assign mean = sum[36:5];

  always_ff @(posedge clk) begin
    if (sample) begin
      ring[slot] <= value;
      is_filled[slot] <= 1'b1;
      slot <= slot + 5'd1;
    end
    oldest <= sample && is_filled[slot] ? ring[slot] : '0;
    latest <= sample ? value : '0;
    change <= {5'b0, latest} - {5'b0, oldest};
    sum <= sum + change;
    if (rst) begin
      is_filled <= '0;
      slot <= '0;
      oldest <= '0;
      latest <= '0;
      change <= '0;
      sum <= '0;
    end
  end
endmodule

`default_nettype wire
