// SPDX-License-Identifier: Apache-2.0
// A value as it was CLOCKS ago.
`default_nettype none

module delay #(
    parameter int unsigned BITS   = 16,
    parameter int unsigned CLOCKS = 2
) (
    input  wire logic            clk,
    input  wire logic [BITS-1:0] value,
    output logic      [BITS-1:0] delayed
);
  logic [CLOCKS-1:0][BITS-1:0] pipe;

  assign delayed = pipe[CLOCKS-1];
  always_ff @(posedge clk) begin
    pipe[0] <= value;
    for (int unsigned i = 1; i < CLOCKS; i++) pipe[i] <= pipe[i-1];
  end
endmodule

`default_nettype wire
