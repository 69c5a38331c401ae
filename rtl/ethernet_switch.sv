// SPDX-License-Identifier: Apache-2.0
// An output-queued Ethernet switch; the scheme of each port is chosen by its register.
//
// `tuser` is high at `tlast` of a frame that the MAC found bad. rx has no tready: frames without
// room are dropped.
`default_nettype none

module ethernet_switch
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned WIDTH = 64,
    parameter int unsigned PORTS = 4,  // a power of two
    parameter int unsigned BUFFER_BYTES = DEFAULT_BUFFER_BYTES,  // of each output; a power of two
    parameter int unsigned STORE_BYTES = 32768,  // of each input; a power of two
    parameter int unsigned CLOCK_PS = 6400,
    // Bit n: scheme number n of the register `port_scheme` is built; bit 0, none, always is.
    parameter logic [3:0] SCHEMES = '1
) (
    input  wire logic                          clk,
    input  wire logic                          rst,
    input  wire logic [PORTS-1:0][  WIDTH-1:0] rx_tdata,
    input  wire logic [PORTS-1:0][WIDTH/8-1:0] rx_tkeep,
    input  wire logic [PORTS-1:0]              rx_tlast,
    input  wire logic [PORTS-1:0]              rx_tuser,
    input  wire logic [PORTS-1:0]              rx_tvalid,
    output logic      [PORTS-1:0][  WIDTH-1:0] tx_tdata,
    output logic      [PORTS-1:0][WIDTH/8-1:0] tx_tkeep,
    output logic      [PORTS-1:0]              tx_tlast,
    output logic      [PORTS-1:0]              tx_tvalid,
    input  wire logic [PORTS-1:0]              tx_tready,
    // Registers, AXI4-Lite.
    input  wire logic [     31:0]              s_axil_awaddr,
    input  wire logic [      2:0]              s_axil_awprot,
    input  wire logic                          s_axil_awvalid,
    output logic                               s_axil_awready,
    input  wire logic [     31:0]              s_axil_wdata,
    input  wire logic [      3:0]              s_axil_wstrb,
    input  wire logic                          s_axil_wvalid,
    output logic                               s_axil_wready,
    output logic      [      1:0]              s_axil_bresp,
    output logic                               s_axil_bvalid,
    input  wire logic                          s_axil_bready,
    input  wire logic [     31:0]              s_axil_araddr,
    input  wire logic [      2:0]              s_axil_arprot,
    input  wire logic                          s_axil_arvalid,
    output logic                               s_axil_arready,
    output logic      [     31:0]              s_axil_rdata,
    output logic      [      1:0]              s_axil_rresp,
    output logic                               s_axil_rvalid,
    input  wire logic                          s_axil_rready
);
  if (PORTS < 2 || PORTS != 1 << $clog2(PORTS)) begin : g_bad_ports
    $fatal(1, "PORTS must be a power of two, at least 2");
  end

  logic [63:0] now_ns;
  clock_ns #(
      .CLOCK_PS(CLOCK_PS)
  ) time_of (
      .clk,
      .rst,
      .now_ns
  );

  logic [PORTS-1:0][32*REGISTERS-1:0] values;
  logic [PORTS-1:0] prepare;
  logic [PORTS-1:0][COUNTERS-1:0][15:0] counts;

  registers #(
      .PORTS  (PORTS),
      .SCHEMES(SCHEMES)
  ) map (
      .*
  );

  logic [PORTS-1:0] was_kept;
  addresses_t [PORTS-1:0] addresses;
  frame_t [PORTS-1:0] frames;
  logic [PORTS-1:0][47:0] source, destination;
  logic [PORTS-1:0][PORTS-1:0] outputs;

  mac_table #(
      .PORTS(PORTS)
  ) table_of_addresses (
      .clk,
      .rst,
      .valid(was_kept),
      .source,
      .destination,
      .outputs
  );

  // By input and output, and by output and input.
  logic [PORTS-1:0][PORTS-1:0] request, granted, in_request, in_granted, words_tvalid, in_tvalid;
  logic [PORTS-1:0][  WIDTH-1:0] words_tdata;
  logic [PORTS-1:0][WIDTH/8-1:0] words_tkeep;
  logic [PORTS-1:0] words_tlast, words_marked;
  logic [PORTS-1:0][31:0] queues, thresholds;

  for (genvar i = 0; i < PORTS; i++) begin : g_port
    assign source[i] = addresses[i].source;
    assign destination[i] = addresses[i].destination;
    assign thresholds[i] = values[i][32*REG_port_ecn_threshold_bytes+:32];
    for (genvar k = 0; k < PORTS; k++) begin : g_cross
      assign in_request[i][k] = request[k][i];
      assign granted[i][k] = in_granted[k][i];
      assign in_tvalid[i][k] = words_tvalid[k][i];
    end

    port #(
        .WIDTH       (WIDTH),
        .PORTS       (PORTS),
        .BUFFER_BYTES(BUFFER_BYTES),
        .STORE_BYTES (STORE_BYTES),
        .SCHEMES     (SCHEMES)
    ) line (
        .clk,
        .rst,
        .seed(i + 1),
        .now_ns,
        .values(values[i]),
        .prepare(prepare[i]),
        .counts(counts[i]),
        .rx_tdata(rx_tdata[i]),
        .rx_tkeep(rx_tkeep[i]),
        .rx_tlast(rx_tlast[i]),
        .rx_tuser(rx_tuser[i]),
        .rx_tvalid(rx_tvalid[i]),
        .tx_tdata(tx_tdata[i]),
        .tx_tkeep(tx_tkeep[i]),
        .tx_tlast(tx_tlast[i]),
        .tx_tvalid(tx_tvalid[i]),
        .tx_tready(tx_tready[i]),
        .was_kept(was_kept[i]),
        .addresses(addresses[i]),
        .outputs(outputs[i]),
        .request(request[i]),
        .frame(frames[i]),
        .granted(granted[i]),
        .queues,
        .thresholds,
        .words_tdata(words_tdata[i]),
        .words_tkeep(words_tkeep[i]),
        .words_tlast(words_tlast[i]),
        .words_tvalid(words_tvalid[i]),
        .words_marked(words_marked[i]),
        .in_request(in_request[i]),
        .in_frames(frames),
        .in_granted(in_granted[i]),
        .in_tdata(words_tdata),
        .in_tkeep(words_tkeep),
        .in_tlast(words_tlast),
        .in_tvalid(in_tvalid[i]),
        .in_marked(words_marked),
        .queue_bytes(queues[i])
    );
  end
endmodule

`default_nettype wire
