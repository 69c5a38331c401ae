// SPDX-License-Identifier: Apache-2.0
// Registers as documented: a parameter is always within its range and changes only by an allowed
// write; a counter grows by its events only; every access is answered 4 clocks later, with SLVERR
// exactly where the page of registers refuses it. Any one register of one port is followed.
module registers_formal
  import core_pkg::*;
(
    input logic                            clk,
    input logic                            rst,
    input logic [31:0]                     s_axil_awaddr,
    input logic [ 2:0]                     s_axil_awprot,
    input logic                            s_axil_awvalid,
    input logic [31:0]                     s_axil_wdata,
    input logic [ 3:0]                     s_axil_wstrb,
    input logic                            s_axil_wvalid,
    input logic                            s_axil_bready,
    input logic [31:0]                     s_axil_araddr,
    input logic [ 2:0]                     s_axil_arprot,
    input logic                            s_axil_arvalid,
    input logic                            s_axil_rready,
    input logic [ 0:0][COUNTERS-1:0][15:0] counts,
    input logic [ 7:0]                     any              // number of the register followed
);
  localparam logic [1:0] OKAY = 2'b00, SLVERR = 2'b10;
  localparam int unsigned FIRST = REGISTERS - COUNTERS;
  logic s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
  logic [1:0] s_axil_bresp, s_axil_rresp;
  logic [31:0] s_axil_rdata;
  logic [0:0][32*REGISTERS-1:0] values;
  logic [0:0] prepare;

  registers #(.PORTS(1)) dut (.*);

  logic is_first = 1, was_reset = 0;
  logic [7:0] followed;
  logic [31:0] row, value, expected, index;
  logic writes, reads, is_parameter, is_legal, here;
  assign row = {24'b0, is_first ? any : followed};
  assign value = values[0][32*followed+:32];
  assign index = s_axil_awaddr / 4;
  assign writes = s_axil_awvalid && s_axil_awready && s_axil_wvalid && s_axil_wready;
  assign reads = s_axil_arvalid && s_axil_arready;
  assign is_parameter = followed < FIRST;
  assign here = s_axil_awaddr == 4 * row;
  assign is_legal = s_axil_awaddr % 4 == 0 && index < FIRST && s_axil_wstrb == 4'hf &&
      s_axil_wdata >= register_min(
      index
  ) && s_axil_wdata <= register_max(
      index
  );

  // What was asked, by clocks ago: a write is in force, and answered, after 4; a read is answered
  // after 4 with the value 3 clocks after it was asked.
  typedef struct packed {
    logic        valid;
    logic        is_legal;
    logic        is_here;
    logic        is_scheme;
    logic [31:0] data;
  } write_t;
  typedef struct packed {
    logic valid;
    logic is_here;
    logic is_nowhere;
  } read_t;
  write_t [3:0] wrote;
  read_t [3:0] was_read;
  logic prepares;
  logic [1:0][31:0] earlier;

  always_ff @(posedge clk) begin
    is_first <= 0;
    if (is_first) begin
      assume (rst);
      assume (any < REGISTERS);
      followed <= any;
    end
    if (rst) was_reset <= 1;

    wrote <= {wrote[2:0], writes, is_legal, here, index == REG_port_scheme, s_axil_wdata};
    was_read <= {
      was_read[2:0],
      reads,
      s_axil_araddr == 4 * row,
      s_axil_araddr >= 4 * REGISTERS || s_axil_araddr % 4 != 0
    };
    earlier <= {earlier[0], value};
    if (rst) begin
      wrote <= '0;
      was_read <= '0;
    end

    if (rst) expected <= register_reset(row);
    else if (!is_parameter) expected <= expected + {16'b0, counts[0][row-FIRST]};
    else if (wrote[2].valid && wrote[2].is_here && wrote[2].is_legal) expected <= wrote[2].data;
    prepares <= rst || (wrote[2].valid && wrote[2].is_legal && wrote[2].is_scheme);

    assert (is_first ? !was_reset : followed < REGISTERS);
    if (was_reset) begin
      assert (value == expected);
      if (is_parameter) assert (value >= register_min(row) && value <= register_max(row));
      assert (prepare[0] == prepares);
      if (wrote[3].valid)
        assert (s_axil_bvalid && s_axil_bresp == (wrote[3].is_legal ? OKAY : SLVERR));
      if (was_read[3].valid && was_read[3].is_here)
        assert (s_axil_rvalid && s_axil_rresp == OKAY && s_axil_rdata == earlier[1]);
      if (was_read[3].valid && was_read[3].is_nowhere)
        assert (s_axil_rvalid && s_axil_rresp == SLVERR && s_axil_rdata == 0);
    end
  end
endmodule
