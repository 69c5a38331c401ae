// SPDX-License-Identifier: Apache-2.0
// The registers of all ports on AXI4-Lite; their map is printed from core's tables (generate.c).
//
// A write outside of a register's range, to a counter or to no register is refused (SLVERR) and
// changes nothing. Only as many bits are stored as the largest value needs. Latency: 4 clocks; one
// read and one write at a time.
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

  // Address and data are taken together, once the last response has left. 1: what was asked. 2: the
  // row of the map, and which register that is. 3: whether it is allowed; of a read, what each group
  // of registers has. 4: the response.
  typedef struct packed {
    logic [31-STRIDE_BITS:0] port;
    logic [7:0]              index;
    logic                    is_aligned;
  } address_t;
  function automatic address_t address_of(input logic [31:0] address);
    address_of = {address[31:STRIDE_BITS], address[STRIDE_BITS-1:2], address[1:0] == 0};
  endfunction

  logic [3:0] write_step, read_step;  // one bit goes through them
  address_t write_at, read_at;
  logic [31:0] data, write_row, row_min, row_max;
  logic is_whole, is_row, is_write, is_read, is_allowed, is_row_read, is_there;
  // A bit for each register, as an address with all of them to reach is slow.
  logic [PORTS-1:0][REGISTERS-1:0] write_here, read_here;
  localparam int unsigned GROUP = 16, GROUPS = (REGISTERS + GROUP - 1) / GROUP;
  logic [PORTS-1:0][GROUPS-1:0][31:0] gathered, read_3;
  logic [31:0] read_all;

  assign is_write = s_axil_awvalid && s_axil_wvalid && write_step == 0 &&
      (!s_axil_bvalid || s_axil_bready);
  assign s_axil_awready = is_write;
  assign s_axil_wready = is_write;
  assign is_read = s_axil_arvalid && read_step == 0 && (!s_axil_rvalid || s_axil_rready);
  assign s_axil_arready = is_read;
  assign write_row = {24'b0, write_at.index};

  always_comb begin
    gathered = '0;
    read_all = '0;
    for (int unsigned port = 0; port < PORTS; port++) begin
      for (int unsigned i = 0; i < REGISTERS; i++)
      gathered[port][i/GROUP] = gathered[port][i/GROUP] |
          ({32{read_here[port][i]}} & values[port][32*i+:32]);
      for (int unsigned i = 0; i < GROUPS; i++) read_all = read_all | read_3[port][i];
    end
  end

  always_ff @(posedge clk) begin
    write_step <= {write_step[2:0], is_write};
    read_step  <= {read_step[2:0], is_read};
    if (is_write) begin
      write_at <= address_of(s_axil_awaddr);
      data <= s_axil_wdata;
      is_whole <= s_axil_wstrb == '1;
    end
    if (is_read) read_at <= address_of(s_axil_araddr);

    is_row <= register_is_built(
        write_row, SCHEMES
    ) && !register_is_counter(
        write_row
    ) && 32'(write_at.port) < PORTS && write_at.is_aligned && is_whole &&
        (write_row != REG_port_scheme || SCHEMES[data[1:0]]);
    row_min <= register_min(write_row);
    row_max <= register_max(write_row);
    is_allowed <= is_row && data >= row_min && data <= row_max;

    is_row_read <= register_is_built(
        {24'b0, read_at.index}, SCHEMES
    ) && 32'(read_at.port) < PORTS && read_at.is_aligned;
    for (int unsigned port = 0; port < PORTS; port++)
    for (int unsigned i = 0; i < REGISTERS; i++) begin
      write_here[port][i] <= write_at.port[PORT_BITS-1:0] == PORT_BITS'(port) &&
          write_at.index == i[7:0];
      read_here[port][i] <= 32'(read_at.port) == port && read_at.index == i[7:0] &&
          read_at.is_aligned;
    end
    is_there <= is_row_read;
    read_3   <= gathered;

    if (s_axil_bready) s_axil_bvalid <= 1'b0;
    if (write_step[2]) begin
      s_axil_bvalid <= 1'b1;
      s_axil_bresp  <= is_allowed ? OKAY : SLVERR;
    end
    if (s_axil_rready) s_axil_rvalid <= 1'b0;
    if (read_step[2]) begin
      s_axil_rvalid <= 1'b1;
      s_axil_rresp  <= is_there ? OKAY : SLVERR;
      s_axil_rdata  <= read_all;
    end
    if (rst) begin
      write_step <= '0;
      read_step <= '0;
      s_axil_bvalid <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end
  end

  logic [PORTS-1:0][REGISTERS-1:0] writes;
  for (genvar port = 0; port < PORTS; port++) begin : g_port
    for (genvar i = 0; i < REGISTERS; i++) begin : g_register
      localparam logic [31:0] MAX = register_max(i);
      localparam int unsigned BITS = MAX == '1 ? 32 : $clog2(MAX + 1);
      logic [BITS-1:0] value;

      assign values[port][32*i+:32] = 32'(value);
      assign writes[port][i] = write_step[2] && is_allowed && write_here[port][i];
      if (!register_is_built(i, SCHEMES)) begin : g_absent
        assign value = '0;
      end else if (register_is_counter(i)) begin : g_counter
        always_ff @(posedge clk) begin
          value <= value + 32'(counts[port][i-(REGISTERS-COUNTERS)]);
          if (rst) value <= '0;
        end
      end else begin : g_parameter
        always_ff @(posedge clk) begin
          if (writes[port][i]) value <= data[BITS-1:0];
          if (rst) value <= BITS'(register_reset(i));
        end
      end
    end
    always_ff @(posedge clk) prepare[port] <= rst || writes[port][REG_port_scheme];
  end
endmodule

`default_nettype wire
