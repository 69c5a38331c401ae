// SPDX-License-Identifier: Apache-2.0
// Registers as documented: a parameter is always within its range and changes only by an allowed
// write; a counter grows by its events only; every access is answered a clock later, with SLVERR
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

  // What was asked a clock ago.
  logic wrote, wrote_legal, read_here, read_nowhere, prepares;
  logic [31:0] answer;

  always_ff @(posedge clk) begin
    is_first <= 0;
    if (is_first) begin
      assume (rst);
      assume (any < REGISTERS);
      followed <= any;
    end
    if (rst) was_reset <= 1;

    if (rst) expected <= register_reset(row);
    else if (!is_parameter) expected <= expected + {16'b0, counts[0][row-FIRST]};
    else if (writes && here && is_legal) expected <= s_axil_wdata;

    wrote <= writes && !rst;
    wrote_legal <= is_legal;
    prepares <= rst || (writes && is_legal && index == REG_port_scheme);
    read_here <= reads && !rst && s_axil_araddr == 4 * row;
    read_nowhere <= reads && !rst && (s_axil_araddr >= 4 * REGISTERS || s_axil_araddr % 4 != 0);
    answer <= value;

    assert (is_first ? !was_reset : followed < REGISTERS);
    if (was_reset) begin
      assert (value == expected);
      if (is_parameter) assert (value >= register_min(row) && value <= register_max(row));
      assert (prepare[0] == prepares);
      if (wrote) assert (s_axil_bvalid && s_axil_bresp == (wrote_legal ? OKAY : SLVERR));
      if (read_here) assert (s_axil_rvalid && s_axil_rresp == OKAY && s_axil_rdata == answer);
      if (read_nowhere) assert (s_axil_rvalid && s_axil_rresp == SLVERR && s_axil_rdata == 0);
    end
  end
endmodule
