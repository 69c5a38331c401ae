// SPDX-License-Identifier: Apache-2.0
// The switch behind taxi's AXI-stream MACs: the signals of their interfaces, by port.
//
// For MACs with FIFOs in the clock of the switch. A MAC's receiver is always taken; what it marks as
// bad at a frame's end is dropped. Its sender gets frames without a pause within them. Completions of
// sending are taken and forgotten. Latency and rate are those of the switch.
`default_nettype none

module taxi_macs #(
    parameter int unsigned WIDTH = 64,
    parameter int unsigned PORTS = 4,
    parameter int unsigned RX_USER_W = 1,  // bit 0: the frame is bad; then a time stamp
    parameter int unsigned TX_TAG_W = 8,
    parameter int unsigned BUFFER_BYTES = core_pkg::DEFAULT_BUFFER_BYTES,
    parameter int unsigned STORE_BYTES = 32768,
    parameter int unsigned CLOCK_PS = 6400,
    parameter logic [3:0] SCHEMES = '1
) (
    input  wire logic                            clk,
    input  wire logic                            rst,
    // m_axis_rx of each MAC.
    input  wire logic [PORTS-1:0][    WIDTH-1:0] rx_tdata,
    input  wire logic [PORTS-1:0][  WIDTH/8-1:0] rx_tkeep,
    input  wire logic [PORTS-1:0][RX_USER_W-1:0] rx_tuser,
    input  wire logic [PORTS-1:0]                rx_tlast,
    input  wire logic [PORTS-1:0]                rx_tvalid,
    output logic      [PORTS-1:0]                rx_tready,
    // s_axis_tx of each MAC.
    output logic      [PORTS-1:0][    WIDTH-1:0] tx_tdata,
    output logic      [PORTS-1:0][  WIDTH/8-1:0] tx_tkeep,
    output logic      [PORTS-1:0][  WIDTH/8-1:0] tx_tstrb,
    output logic      [PORTS-1:0][ TX_TAG_W-1:0] tx_tid,
    output logic      [PORTS-1:0]                tx_tuser,        // abort: never
    output logic      [PORTS-1:0]                tx_tlast,
    output logic      [PORTS-1:0]                tx_tvalid,
    input  wire logic [PORTS-1:0]                tx_tready,
    // m_axis_tx_cpl of each MAC.
    input  wire logic [PORTS-1:0]                tx_cpl_tvalid,
    output logic      [PORTS-1:0]                tx_cpl_tready,
    // Registers, AXI4-Lite.
    input  wire logic [     31:0]                s_axil_awaddr,
    input  wire logic [      2:0]                s_axil_awprot,
    input  wire logic                            s_axil_awvalid,
    output logic                                 s_axil_awready,
    input  wire logic [     31:0]                s_axil_wdata,
    input  wire logic [      3:0]                s_axil_wstrb,
    input  wire logic                            s_axil_wvalid,
    output logic                                 s_axil_wready,
    output logic      [      1:0]                s_axil_bresp,
    output logic                                 s_axil_bvalid,
    input  wire logic                            s_axil_bready,
    input  wire logic [     31:0]                s_axil_araddr,
    input  wire logic [      2:0]                s_axil_arprot,
    input  wire logic                            s_axil_arvalid,
    output logic                                 s_axil_arready,
    output logic      [     31:0]                s_axil_rdata,
    output logic      [      1:0]                s_axil_rresp,
    output logic                                 s_axil_rvalid,
    input  wire logic                            s_axil_rready
);
  logic [PORTS-1:0] is_bad;
  for (genvar i = 0; i < PORTS; i++) begin : g_port
    assign is_bad[i] = rx_tuser[i][0];
  end
  assign rx_tready = '1;
  assign tx_cpl_tready = '1;
  assign tx_tstrb = tx_tkeep;
  assign {tx_tid, tx_tuser} = '0;

  ethernet_switch #(
      .WIDTH       (WIDTH),
      .PORTS       (PORTS),
      .BUFFER_BYTES(BUFFER_BYTES),
      .STORE_BYTES (STORE_BYTES),
      .CLOCK_PS    (CLOCK_PS),
      .SCHEMES     (SCHEMES)
  ) switch (
      .rx_tuser(is_bad),
      .*
  );
endmodule

`default_nettype wire
