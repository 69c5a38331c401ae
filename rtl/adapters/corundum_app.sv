// SPDX-License-Identifier: Apache-2.0
// Inside Corundum's application block, on the synchronous streams of one port: a switch of two
// ports, the line and the host.
//
// Port 0 is the line. A scheme on it paces what the host sends by the ACKs that the line brings, a
// scheme on port 1 paces what the line brings. A frame for its own side is dropped, as a switch does.
// The host gets the completion of sending when its frame enters, with a time of 0, as a frame may
// be dropped later; those of the MAC are taken and forgotten. Time stamps of received frames are 0.
`default_nettype none

module corundum_app #(
    parameter int unsigned WIDTH = 512,  // AXIS_SYNC_DATA_WIDTH
    parameter int unsigned RX_USER_WIDTH = 97,  // bit 0: bad frame; then the time stamp
    parameter int unsigned TX_USER_WIDTH = 17,  // bit 0: bad frame; then the tag
    parameter int unsigned TX_TAG_WIDTH = 16,
    parameter int unsigned PTP_TS_WIDTH = 96,
    parameter int unsigned BUFFER_BYTES = core_pkg::DEFAULT_BUFFER_BYTES,
    parameter int unsigned STORE_BYTES = 32768,
    parameter int unsigned CLOCK_PS = 4000,
    parameter logic [3:0] SCHEMES = '1
) (
    input  wire logic                     clk,
    input  wire logic                     rst,
    // From the MAC to the host.
    input  wire logic [        WIDTH-1:0] s_axis_sync_rx_tdata,
    input  wire logic [      WIDTH/8-1:0] s_axis_sync_rx_tkeep,
    input  wire logic                     s_axis_sync_rx_tvalid,
    output logic                          s_axis_sync_rx_tready,
    input  wire logic                     s_axis_sync_rx_tlast,
    input  wire logic [RX_USER_WIDTH-1:0] s_axis_sync_rx_tuser,
    output logic      [        WIDTH-1:0] m_axis_sync_rx_tdata,
    output logic      [      WIDTH/8-1:0] m_axis_sync_rx_tkeep,
    output logic                          m_axis_sync_rx_tvalid,
    input  wire logic                     m_axis_sync_rx_tready,
    output logic                          m_axis_sync_rx_tlast,
    output logic      [RX_USER_WIDTH-1:0] m_axis_sync_rx_tuser,
    // From the host to the MAC.
    input  wire logic [        WIDTH-1:0] s_axis_sync_tx_tdata,
    input  wire logic [      WIDTH/8-1:0] s_axis_sync_tx_tkeep,
    input  wire logic                     s_axis_sync_tx_tvalid,
    output logic                          s_axis_sync_tx_tready,
    input  wire logic                     s_axis_sync_tx_tlast,
    input  wire logic [TX_USER_WIDTH-1:0] s_axis_sync_tx_tuser,
    output logic      [        WIDTH-1:0] m_axis_sync_tx_tdata,
    output logic      [      WIDTH/8-1:0] m_axis_sync_tx_tkeep,
    output logic                          m_axis_sync_tx_tvalid,
    input  wire logic                     m_axis_sync_tx_tready,
    output logic                          m_axis_sync_tx_tlast,
    output logic      [TX_USER_WIDTH-1:0] m_axis_sync_tx_tuser,
    // Completions of sending.
    input  wire logic [ PTP_TS_WIDTH-1:0] s_axis_sync_tx_cpl_ts,
    input  wire logic [ TX_TAG_WIDTH-1:0] s_axis_sync_tx_cpl_tag,
    input  wire logic                     s_axis_sync_tx_cpl_valid,
    output logic                          s_axis_sync_tx_cpl_ready,
    output logic      [ PTP_TS_WIDTH-1:0] m_axis_sync_tx_cpl_ts,
    output logic      [ TX_TAG_WIDTH-1:0] m_axis_sync_tx_cpl_tag,
    output logic                          m_axis_sync_tx_cpl_valid,
    input  wire logic                     m_axis_sync_tx_cpl_ready,
    // s_axil_app_ctrl.
    input  wire logic [             31:0] s_axil_awaddr,
    input  wire logic [              2:0] s_axil_awprot,
    input  wire logic                     s_axil_awvalid,
    output logic                          s_axil_awready,
    input  wire logic [             31:0] s_axil_wdata,
    input  wire logic [              3:0] s_axil_wstrb,
    input  wire logic                     s_axil_wvalid,
    output logic                          s_axil_wready,
    output logic      [              1:0] s_axil_bresp,
    output logic                          s_axil_bvalid,
    input  wire logic                     s_axil_bready,
    input  wire logic [             31:0] s_axil_araddr,
    input  wire logic [              2:0] s_axil_arprot,
    input  wire logic                     s_axil_arvalid,
    output logic                          s_axil_arready,
    output logic      [             31:0] s_axil_rdata,
    output logic      [              1:0] s_axil_rresp,
    output logic                          s_axil_rvalid,
    input  wire logic                     s_axil_rready
);
  // A frame of the host waits while too many completions do. One ends at most in a clock.
  localparam int unsigned COMPLETIONS = 64;
  logic [$clog2(COMPLETIONS):0] completions;
  logic tx_ready, tx_moves, completes;
  logic [TX_TAG_WIDTH-1:0] tag;

  assign s_axis_sync_rx_tready = 1'b1;
  assign s_axis_sync_tx_tready = tx_ready;
  assign s_axis_sync_tx_cpl_ready = 1'b1;
  assign m_axis_sync_tx_cpl_ts = '0;
  assign m_axis_sync_rx_tuser = '0;
  assign m_axis_sync_tx_tuser = '0;
  assign tx_moves = s_axis_sync_tx_tvalid && tx_ready;
  assign completes = m_axis_sync_tx_cpl_valid && m_axis_sync_tx_cpl_ready;
  assign tag = s_axis_sync_tx_tuser[TX_TAG_WIDTH:1];

  fifo #(
      .BITS (TX_TAG_WIDTH),
      .DEPTH(COMPLETIONS)
  ) tags (
      .clk,
      .rst,
      .push (tx_moves && s_axis_sync_tx_tlast),
      .value(tag),
      .valid(m_axis_sync_tx_cpl_valid),
      .head (m_axis_sync_tx_cpl_tag),
      .pop  (completes)
  );

  always_ff @(posedge clk) begin
    completions <= completions + 7'(tx_moves && s_axis_sync_tx_tlast) - 7'(completes);
    tx_ready <= completions < 7'(COMPLETIONS - 2);
    if (rst) begin
      completions <= '0;
      tx_ready <= 1'b0;
    end
  end

  ethernet_switch #(
      .WIDTH       (WIDTH),
      .PORTS       (2),
      .BUFFER_BYTES(BUFFER_BYTES),
      .STORE_BYTES (STORE_BYTES),
      .CLOCK_PS    (CLOCK_PS),
      .SCHEMES     (SCHEMES)
  ) switch (
      .rx_tdata ({s_axis_sync_tx_tdata, s_axis_sync_rx_tdata}),
      .rx_tkeep ({s_axis_sync_tx_tkeep, s_axis_sync_rx_tkeep}),
      .rx_tlast ({s_axis_sync_tx_tlast, s_axis_sync_rx_tlast}),
      .rx_tuser ({s_axis_sync_tx_tuser[0], s_axis_sync_rx_tuser[0]}),
      .rx_tvalid({tx_moves, s_axis_sync_rx_tvalid}),
      .tx_tdata ({m_axis_sync_rx_tdata, m_axis_sync_tx_tdata}),
      .tx_tkeep ({m_axis_sync_rx_tkeep, m_axis_sync_tx_tkeep}),
      .tx_tlast ({m_axis_sync_rx_tlast, m_axis_sync_tx_tlast}),
      .tx_tvalid({m_axis_sync_rx_tvalid, m_axis_sync_tx_tvalid}),
      .tx_tready({m_axis_sync_rx_tready, m_axis_sync_tx_tready}),
      .*
  );
endmodule

`default_nettype wire
