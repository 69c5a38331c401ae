// SPDX-License-Identifier: Apache-2.0
// Where a destination is: the port that last sent from this address. Unknown addresses and groups
// go to all ports but the one they came from.
//
// Direct-mapped, ENTRIES addresses: of two with the same hash the later one stays. Entries do not age:
// a host that moves is learnt with its first frame. The ports take turns to write, a clock each, into
// memories of the same content, one for each port that asks; an address that waits for its turn when
// the next one of its port comes is not learnt from this frame. That takes more than a frame in PORTS
// clocks. After a reset the table is cleared, and unknown meanwhile.
// Latency: 5 clocks, one frame per port and clock.
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
  localparam int unsigned PORT_BITS = $clog2(PORTS);

  typedef struct packed {
    logic                 is_known;
    logic [PORT_BITS-1:0] port;
    logic [47:0]          address;
  } entry_t;

  function automatic logic [BITS-1:0] hash_of(input logic [47:0] address);
    hash_of = '0;
    for (int unsigned i = 0; i < 48; i++) hash_of[i%BITS] = hash_of[i%BITS] ^ address[i];
  endfunction

  // Addresses that wait to be learnt, and the one that is.
  logic [PORTS-1:0] waits;
  logic [PORTS-1:0][47:0] waiting;
  logic [PORT_BITS-1:0] turn;
  logic [BITS:0] cleared;
  logic writes, learns;
  logic [BITS-1:0] write_at;
  entry_t learnt, written;

  always_ff @(posedge clk) begin
    turn <= turn + 1'b1;
    waits[turn] <= 1'b0;
    for (int unsigned i = 0; i < PORTS; i++)
    if (valid[i] && !source[i][40]) begin
      waits[i]   <= 1'b1;
      waiting[i] <= source[i];
    end
    learns   <= waits[turn];
    learnt   <= {1'b1, turn, waiting[turn]};

    writes   <= learns || !cleared[BITS];
    write_at <= cleared[BITS] ? hash_of(learnt.address) : cleared[BITS-1:0];
    written  <= cleared[BITS] ? learnt : '0;
    if (!cleared[BITS]) cleared <= cleared + 1'b1;
    if (rst) begin
      turn <= '0;
      waits <= '0;
      learns <= 1'b0;
      cleared <= '0;
    end
  end

  for (genvar i = 0; i < PORTS; i++) begin : g_ask
    // 1: where to read. 2, 3: the entry. 4: whether it is that of the address. 5: the ports.
    localparam logic [PORTS-1:0] OTHERS = ~(PORTS'(1) << i);
    entry_t memory[ENTRIES];
    entry_t entry_2, entry_3;
    logic [BITS-1:0] hash_1;
    logic [2:0][47:0] asked;
    logic is_found_4;
    logic [PORT_BITS-1:0] port_4;

    always_ff @(posedge clk) begin
      if (writes) memory[write_at] <= written;
      hash_1 <= hash_of(destination[i]);
      asked <= {asked[1:0], destination[i]};
      entry_2 <= memory[hash_1];
      entry_3 <= entry_2;
      is_found_4 <= entry_3.is_known && entry_3.address == asked[2] && !asked[2][40] &&
          cleared[BITS];
      port_4 <= entry_3.port;
      // A frame for its own port's side has arrived already.
      outputs[i] <= is_found_4 ? (PORTS'(1) << port_4) & OTHERS : OTHERS;
    end
  end
endmodule

`default_nettype wire
