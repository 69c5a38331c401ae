// SPDX-License-Identifier: Apache-2.0
// One number from a flow's addresses and ports, other in each period of HCF. core: hcf_flow_key.
// Latency: 21 clocks, one key per clock.
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
  logic [63:0] addresses_7, factor_8, product_14, mixed_15, again_21;
  logic [31:0] seed_1, ports_7;
  logic [63:0] address_1;

  always_ff @(posedge clk) begin
    address_1 <= {source, destination};
    seed_1 <= seed;
    factor_8 <= addresses_7 ^ {32'b0, ports_7};
    mixed_15 <= product_14 ^ product_14 >> 29;
  end
  assign key = again_21[63:32];

  delay #(
      .BITS  (32),
      .CLOCKS(7)
  ) ports_of (
      .clk,
      .value  ({source_port, destination_port}),
      .delayed(ports_7)
  );

  multiply_64 by_seed (
      .clk,
      .a(address_1),
      .b({31'b0, seed_1, 1'b1}),
      .product(addresses_7)
  );

  multiply_64 first (
      .clk,
      .a(factor_8),
      .b(GOLDEN),
      .product(product_14)
  );

  multiply_64 second (
      .clk,
      .a(mixed_15),
      .b(GOLDEN),
      .product(again_21)
  );
endmodule

`default_nettype wire
