// SPDX-License-Identifier: Apache-2.0
// The registers of all ports on AXI4-Lite; their map is printed from core's tables (generate.c).
//
// A write outside of a register's range, to a counter or to no register is refused (SLVERR) and
// changes nothing. Only as many bits are stored as the largest value needs. Latency: 1 clock.
`default_nettype none

module registers
  import core_pkg::*;
#(
    parameter int unsigned PORTS = 4,
    parameter logic [3:0] SCHEMES = '1  // which are built, by number; others have no registers
) (
    input  wire logic                                     clk,
    input  wire logic                                     rst,
    input  wire logic [     31:0]                         s_axil_awaddr,
    input  wire logic [      2:0]                         s_axil_awprot,
    input  wire logic                                     s_axil_awvalid,
    output logic                                          s_axil_awready,
    input  wire logic [     31:0]                         s_axil_wdata,
    input  wire logic [      3:0]                         s_axil_wstrb,
    input  wire logic                                     s_axil_wvalid,
    output logic                                          s_axil_wready,
    output logic      [      1:0]                         s_axil_bresp,
    output logic                                          s_axil_bvalid,
    input  wire logic                                     s_axil_bready,
    input  wire logic [     31:0]                         s_axil_araddr,
    input  wire logic [      2:0]                         s_axil_arprot,
    input  wire logic                                     s_axil_arvalid,
    output logic                                          s_axil_arready,
    output logic      [     31:0]                         s_axil_rdata,
    output logic      [      1:0]                         s_axil_rresp,
    output logic                                          s_axil_rvalid,
    input  wire logic                                     s_axil_rready,
    // Of each port: all registers, a write to `port_scheme`, and what its counters grow by.
    output logic      [PORTS-1:0][32*REGISTERS-1:0]       values,
    output logic      [PORTS-1:0]                         prepare,
    input  wire logic [PORTS-1:0][    COUNTERS-1:0][15:0] counts
);
  localparam logic [1:0] OKAY = 2'b00, SLVERR = 2'b10;
  localparam int unsigned PORT_BITS = PORTS > 1 ? $clog2(PORTS) : 1;
  localparam int unsigned STRIDE_BITS = $clog2(PORT_STRIDE);

  logic [PORTS-1:0][REGISTERS-1:0] writes;
  logic [7:0] write_index, read_index;
  logic [31-STRIDE_BITS:0] write_port, read_port;
  logic is_write, is_read, is_allowed, is_there;
  logic [31:0] write_row, write_min, write_max;

  assign write_index = s_axil_awaddr[STRIDE_BITS-1:2];
  assign write_port = s_axil_awaddr[31:STRIDE_BITS];
  assign read_index = s_axil_araddr[STRIDE_BITS-1:2];
  assign read_port = s_axil_araddr[31:STRIDE_BITS];

  // Address and data are taken together, once the last response has left.
  assign is_write = s_axil_awvalid && s_axil_wvalid && (!s_axil_bvalid || s_axil_bready);
  assign s_axil_awready = is_write;
  assign s_axil_wready = is_write;
  assign is_read = s_axil_arvalid && (!s_axil_rvalid || s_axil_rready);
  assign s_axil_arready = is_read;

  assign write_row = {24'b0, write_index};
  assign write_min = register_min(write_row);
  assign write_max = register_max(write_row);
  assign is_allowed = register_is_built(
      write_row, SCHEMES
  ) && {{STRIDE_BITS{1'b0}}, write_port} < PORTS && s_axil_awaddr[1:0] == 0 && s_axil_wstrb == '1 &&
      !register_is_counter(
      write_row
  ) && s_axil_wdata >= write_min && s_axil_wdata <= write_max &&
      (write_row != REG_port_scheme || SCHEMES[s_axil_wdata[1:0]]);
  assign is_there = register_is_built(
      {24'b0, read_index}, SCHEMES
  ) && {{STRIDE_BITS{1'b0}}, read_port} < PORTS && s_axil_araddr[1:0] == 0;

  for (genvar port = 0; port < PORTS; port++) begin : g_port
    for (genvar i = 0; i < REGISTERS; i++) begin : g_register
      localparam logic [31:0] MAX = register_max(i);
      localparam int unsigned BITS = MAX == '1 ? 32 : $clog2(MAX + 1);
      logic [BITS-1:0] value;

      assign values[port][32*i+:32] = 32'(value);
      assign writes[port][i] = is_write && is_allowed && write_port[PORT_BITS-1:0] == port &&
          write_index == i;
      if (!register_is_built(i, SCHEMES)) begin : g_absent
        assign value = '0;
      end else if (register_is_counter(i)) begin : g_counter
        always_ff @(posedge clk) begin
          value <= value + 32'(counts[port][i-(REGISTERS-COUNTERS)]);
          if (rst) value <= '0;
        end
      end else begin : g_parameter
        always_ff @(posedge clk) begin
          if (writes[port][i]) value <= s_axil_wdata[BITS-1:0];
          if (rst) value <= BITS'(register_reset(i));
        end
      end
    end
    always_ff @(posedge clk) prepare[port] <= rst || writes[port][REG_port_scheme];
  end

  always_ff @(posedge clk) begin
    if (s_axil_bready) s_axil_bvalid <= 1'b0;
    if (is_write) begin
      s_axil_bvalid <= 1'b1;
      s_axil_bresp  <= is_allowed ? OKAY : SLVERR;
    end
    if (s_axil_rready) s_axil_rvalid <= 1'b0;
    if (is_read) begin
      s_axil_rvalid <= 1'b1;
      s_axil_rresp  <= is_there ? OKAY : SLVERR;
      s_axil_rdata  <= is_there ? values[read_port[PORT_BITS-1:0]][32*read_index+:32] : '0;
    end
    if (rst) begin
      s_axil_bvalid <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
