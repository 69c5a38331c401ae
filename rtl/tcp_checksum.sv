// SPDX-License-Identifier: Apache-2.0
// One's complement checksum after one 16-bit word changed (RFC 1624 eqn. 3): ~(~HC + ~m + m').
// core: tcp_checksum_update. Serves TCP and IPv4 headers. Latency: 2 clocks, one update per clock.
`default_nettype none

module tcp_checksum (
    input  wire logic        clk,
    input  wire logic [15:0] checksum,
    input  wire logic [15:0] old_word,
    input  wire logic [15:0] new_word,
    output logic      [15:0] updated
);
  logic [17:0] sum;
  logic [16:0] folded;

  assign folded = {1'b0, sum[15:0]} + {15'b0, sum[17:16]};

  always_ff @(posedge clk) begin
    sum <= {2'b0, ~checksum} + {2'b0, ~old_word} + {2'b0, new_word};
    updated <= ~(folded[15:0] +{15'b0, folded[16]});
  end
endmodule

`default_nettype wire
