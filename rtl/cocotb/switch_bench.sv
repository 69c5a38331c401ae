// SPDX-License-Identifier: Apache-2.0
// The switch with streams that have names, one scope for each port, as cocotb's buses want them.
module switch_bench #(
    parameter int unsigned WIDTH = 64,
    parameter int unsigned PORTS = 4
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] s_axil_awaddr,
    input  logic [ 2:0] s_axil_awprot,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [31:0] s_axil_wdata,
    input  logic [ 3:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [31:0] s_axil_araddr,
    input  logic [ 2:0] s_axil_arprot,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready
);
  logic [PORTS-1:0][WIDTH-1:0] rx_tdata, tx_tdata;
  logic [PORTS-1:0][WIDTH/8-1:0] rx_tkeep, tx_tkeep;
  logic [PORTS-1:0] rx_tlast, rx_tuser, rx_tvalid, tx_tlast, tx_tvalid, tx_tready;

  ethernet_switch #(
      .WIDTH(WIDTH),
      .PORTS(PORTS)
  ) dut (
      .*
  );

  for (genvar i = 0; i < PORTS; i++) begin : g_port
    logic [WIDTH-1:0] in_tdata, out_tdata;
    logic [WIDTH/8-1:0] in_tkeep, out_tkeep;
    logic in_tlast, in_tuser, in_tvalid, out_tlast, out_tvalid, out_tready;
    assign rx_tdata[i] = in_tdata;
    assign rx_tkeep[i] = in_tkeep;
    assign rx_tlast[i] = in_tlast;
    assign rx_tuser[i] = in_tuser;
    assign rx_tvalid[i] = in_tvalid;
    assign out_tdata = tx_tdata[i];
    assign out_tkeep = tx_tkeep[i];
    assign out_tlast = tx_tlast[i];
    assign out_tvalid = tx_tvalid[i];
    assign tx_tready[i] = out_tready;
  end
endmodule
