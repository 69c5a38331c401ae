// SPDX-License-Identifier: Apache-2.0
// Congestion Experienced from a threshold of the queue on, for packets that allow it (RFC 3168
// §5, FairQ §IV-E: DCTCP's marking), with the checksum of an IPv4 header. Latency: 1 clock.
`default_nettype none

module ecn_mark (
    input  wire logic        clk,
    input  wire logic [31:0] queue_bytes,
    input  wire logic [31:0] threshold_bytes,  // 0: never
    input  wire logic        is_ip,
    input  wire logic        is_v6,
    input  wire logic [15:0] first_word,       // of the IP header: it holds the two bits
    input  wire logic [15:0] checksum,         // of an IPv4 header
    output logic             marks,
    output logic      [15:0] marked_word,
    output logic      [15:0] marked_checksum
);
  logic [15:0] word;
  logic [ 1:0] ecn;

  assign word = first_word | (is_v6 ? 16'h0030 : 16'h0003);
  assign ecn  = is_v6 ? first_word[5:4] : first_word[1:0];

  // The word grows by 1 or 2, so the checksum needs one sum only (RFC 1624 eqn. 4).
  logic [16:0] sum;
  assign sum = {1'b0, ~checksum} + {15'b0, ~ecn};

  always_ff @(posedge clk) begin
    marked_word <= word;
    marked_checksum <= ~(sum[15:0] +{15'b0, sum[16]});
    marks <= is_ip && threshold_bytes != 0 && queue_bytes >= threshold_bytes &&
        ecn != 2'b00 && ecn != 2'b11;
  end
endmodule

`default_nettype wire
