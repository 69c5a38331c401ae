// SPDX-License-Identifier: Apache-2.0
// Nanoseconds since the reset, for a clock of any whole number of picoseconds. They never wrap.
`default_nettype none

module clock_ns #(
    parameter int unsigned CLOCK_PS = 6400
) (
    input  wire logic        clk,
    input  wire logic        rst,
    output logic      [63:0] now_ns
);
  localparam logic [15:0] WHOLE_NS = 16'(CLOCK_PS / 1000), REST_PS = 16'(CLOCK_PS % 1000);
  logic [15:0] fraction_ps;
  logic carries;
  assign carries = fraction_ps + REST_PS >= 16'd1000;

  always_ff @(posedge clk) begin
    now_ns <= now_ns + {48'b0, WHOLE_NS} + {63'b0, carries};
    fraction_ps <= fraction_ps + REST_PS - (carries ? 16'd1000 : 16'd0);
    if (rst) begin
      now_ns <= '0;
      fraction_ps <= '0;
    end
  end
endmodule

`default_nettype wire
