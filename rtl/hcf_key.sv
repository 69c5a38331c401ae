// SPDX-License-Identifier: Apache-2.0
// One number from a flow's addresses and ports, other in each period of HCF. core: hcf_flow_key.
// Its three products take turns at one multiplier. Latency: 21 clocks from `start`, one key at a time;
// the flow and the seed stay meanwhile, and the key until the next start.
`default_nettype none

module hcf_key (
    input  wire logic        clk,
    input  wire logic        start,
    input  wire logic [31:0] seed,
    input  wire logic [31:0] source,
    input  wire logic [31:0] destination,
    input  wire logic [15:0] source_port,
    input  wire logic [15:0] destination_port,
    output logic      [31:0] key
);
  localparam int unsigned TURN = 7;  // clocks: to choose the factors, then their product
  logic [63:0] a, b, product;
  logic [2*TURN-1:0] step;  // one bit goes through it

  assign key = product[63:32];
  always_ff @(posedge clk) begin
    step <= start ? 1 : step << 1;
    if (start) begin
      a <= {source, destination};
      b <= {31'b0, seed, 1'b1};
    end else if (step[TURN-1]) begin
      a <= product ^ {32'b0, source_port, destination_port};
      b <= core_pkg::HCF_GOLDEN_64;
    end else if (step[2*TURN-1]) a <= product ^ product >> 29;
  end

  multiply_64 products (
      .clk,
      .a,
      .b,
      .product
  );
endmodule

`default_nettype wire
