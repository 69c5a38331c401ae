// SPDX-License-Identifier: Apache-2.0
// Where a destination is: the port that last sent from this address. Unknown addresses and groups
// go to all ports but the one they came from.
//
// Direct-mapped, ENTRIES addresses: of two with the same hash the later one stays. Entries do not age:
// a host that moves is learnt with its first frame. Latency: 2 clocks, one frame per port and clock.
`default_nettype none

module mac_table #(
    parameter int unsigned PORTS   = 4,
    parameter int unsigned ENTRIES = 256
) (
    input  wire logic                        clk,
    input  wire logic                        rst,
    input  wire logic [PORTS-1:0]            valid,
    input  wire logic [PORTS-1:0][     47:0] source,
    input  wire logic [PORTS-1:0][     47:0] destination,
    output logic      [PORTS-1:0][PORTS-1:0] outputs
);
  localparam int unsigned BITS = $clog2(ENTRIES);

  function automatic logic [BITS-1:0] hash_of(input logic [47:0] address);
    hash_of = '0;
    for (int unsigned i = 0; i < 48; i++) hash_of[i%BITS] = hash_of[i%BITS] ^ address[i];
  endfunction

  // Each port learns into a memory of its own, which every port reads: one writer, PORTS readers.
  logic [PORTS-1:0][PORTS-1:0] knows;  // [asking][learnt]
  logic [PORTS-1:0][47:0] destination_1;
  logic [PORTS-1:0][PORTS-1:0] all_others;

  for (genvar learns = 0; learns < PORTS; learns++) begin : g_learn
    logic [47:0] addresses[ENTRIES];
    logic [ENTRIES-1:0] is_known;

    always_ff @(posedge clk) begin
      if (valid[learns] && !source[learns][40]) begin
        addresses[hash_of(source[learns])] <= source[learns];
        is_known[hash_of(source[learns])]  <= 1'b1;
      end
      // An address seen on another port has moved there.
      for (int unsigned other = 0; other < PORTS; other++)
      if (other != learns && valid[other] && !source[other][40])
        is_known[hash_of(source[other])] <= 1'b0;
      if (rst) is_known <= '0;
    end

    for (genvar asks = 0; asks < PORTS; asks++) begin : g_ask
      logic [47:0] address;
      logic is_entry;
      always_ff @(posedge clk) begin
        address  <= addresses[hash_of(destination[asks])];
        is_entry <= is_known[hash_of(destination[asks])];
      end
      assign knows[asks][learns] = is_entry && address == destination_1[asks];
    end
  end

  for (genvar asks = 0; asks < PORTS; asks++) begin : g_answer
    assign all_others[asks] = ~(PORTS'(1) << asks);
    always_ff @(posedge clk) begin
      destination_1[asks] <= destination[asks];
      // A frame for its own port's side has arrived already.
      outputs[asks] <= knows[asks] == 0 || destination_1[asks][40] ? all_others[asks] :
          knows[asks] & all_others[asks];
    end
  end
endmodule

`default_nettype wire
