// SPDX-License-Identifier: Apache-2.0
// One number from a flow's addresses and ports, other in each period of HCF. core: hcf_flow_key.
// Latency: 6 clocks, one key per clock.
`default_nettype none

module hcf_key (
    input  wire logic        clk,
    input  wire logic [31:0] seed,
    input  wire logic [31:0] source,
    input  wire logic [31:0] destination,
    input  wire logic [15:0] source_port,
    input  wire logic [15:0] destination_port,
    output logic      [31:0] key
);
  localparam logic [63:0] GOLDEN = 64'h9e3779b97f4a7c15;
  logic [63:0] addresses, mixed;
  logic [63:0] factor, product, again;
  logic [31:0] ports_1, ports_2;
  logic [63:0] address_1;
  logic [32:0] seed_1;

  always_ff @(posedge clk) begin
    address_1 <= {source, destination};
    seed_1 <= {seed, 1'b1};
    ports_1 <= {source_port, destination_port};

    addresses <= address_1 * {31'b0, seed_1};
    ports_2 <= ports_1;

    factor <= addresses ^ {32'b0, ports_2};
    product <= factor * GOLDEN;
    mixed <= product ^ product >> 29;
    again <= mixed * GOLDEN;
  end
  assign key = again[63:32];
endmodule

`default_nettype wire
