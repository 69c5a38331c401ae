// SPDX-License-Identifier: Apache-2.0
// In NetFPGA-PLUS's pipeline, between output port lookup and output queues: windows of ACKs are
// lowered by the scheme of the port that they came in by, from the queue of that port.
//
// tuser is NetFPGA's: bytes 0 and 1 the length, byte 2 the source, byte 3 the destinations, a bit for
// each port, even ones the MACs' (MAC i: bit 2 * i). Frames leave in order, with their tuser. Only the
// windows of frames from a MAC change. Frames of the host (odd bits) that go to a MAC count as what
// leaves by it: its scheme learns of their flows and of the size of their segments. Of any frame
// `stripped` removes a SYN's scale option and `clears_bits` clears reserved bits. A frame
// without room in the store is lost, as the input never waits. The queues are counted from what the
// output queues report.
// HCF needs queues of its own, so it is not here. Latency: 61 clocks from a frame's last word.
`default_nettype none

module netfpga_slot
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned       WIDTH       = 512,
    parameter int unsigned       PORTS       = 2,
    parameter int unsigned       STORE_BYTES = 65536,
    parameter int unsigned       CLOCK_PS    = 4000,
    parameter logic        [3:0] SCHEMES     = 4'b0111
) (
    input  wire logic                     axis_aclk,
    input  wire logic                     axis_resetn,
    input  wire logic [  WIDTH-1:0]       s_axis_tdata,
    input  wire logic [WIDTH/8-1:0]       s_axis_tkeep,
    input  wire logic [      127:0]       s_axis_tuser,
    input  wire logic                     s_axis_tvalid,
    output logic                          s_axis_tready,
    input  wire logic                     s_axis_tlast,
    output logic      [  WIDTH-1:0]       m_axis_tdata,
    output logic      [WIDTH/8-1:0]       m_axis_tkeep,
    output logic      [      127:0]       m_axis_tuser,
    output logic                          m_axis_tvalid,
    input  wire logic                     m_axis_tready,
    output logic                          m_axis_tlast,
    // From the output queues, by MAC: frames that joined and that left.
    input  wire logic [  PORTS-1:0]       pkt_stored,
    input  wire logic [  PORTS-1:0][15:0] bytes_stored,
    input  wire logic [  PORTS-1:0]       pkt_removed,
    input  wire logic [  PORTS-1:0][15:0] bytes_removed,
    input  wire logic [       31:0]       s_axil_awaddr,
    input  wire logic [        2:0]       s_axil_awprot,
    input  wire logic                     s_axil_awvalid,
    output logic                          s_axil_awready,
    input  wire logic [       31:0]       s_axil_wdata,
    input  wire logic [        3:0]       s_axil_wstrb,
    input  wire logic                     s_axil_wvalid,
    output logic                          s_axil_wready,
    output logic      [        1:0]       s_axil_bresp,
    output logic                          s_axil_bvalid,
    input  wire logic                     s_axil_bready,
    input  wire logic [       31:0]       s_axil_araddr,
    input  wire logic [        2:0]       s_axil_arprot,
    input  wire logic                     s_axil_arvalid,
    output logic                          s_axil_arready,
    output logic      [       31:0]       s_axil_rdata,
    output logic      [        1:0]       s_axil_rresp,
    output logic                          s_axil_rvalid,
    input  wire logic                     s_axil_rready
);
  localparam int unsigned FIRST = REGISTERS - COUNTERS;

  logic clk, rst;
  assign clk = axis_aclk;
  assign rst = !axis_resetn;
  assign s_axis_tready = 1'b1;

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

  // tuser comes with a frame's first word, and waits until its last one has left.
  logic is_first, was_kept, arrived, rewritten, was_floored;
  logic has_user, frame_valid, started;
  logic [127:0] user, last_user, user_1, user_2;
  addresses_t addresses;
  header_t header;
  frame_t frame;
  assign user = is_first ? s_axis_tuser : last_user;
  always_ff @(posedge clk) begin
    user_1 <= user;
    user_2 <= user_1;
    if (s_axis_tvalid) begin
      is_first  <= s_axis_tlast;
      last_user <= user;
    end
    if (rst) is_first <= 1'b1;
  end

  ring #(
      .BITS (128),
      .WORDS(STORE_BYTES / 64)
  ) users (
      .clk,
      .rst,
      .push (was_kept),
      .value(user_2),
      .valid(has_user),
      .head (m_axis_tuser),
      .pop  (m_axis_tvalid && m_axis_tready && m_axis_tlast)
  );

  // The MACs that a frame came from and goes to: with its header, with its answer, with its patches.
  logic [PORTS-1:0] from, to, from_now, to_now, from_answer, from_written;
  for (genvar i = 0; i < PORTS; i++) begin : g_mac
    assign from[i] = user[16+2*i];
    assign to[i]   = user[24+2*i];
  end

  delay #(
      .BITS  (2 * PORTS),
      .CLOCKS(HEADER_CLOCKS)
  ) route (
      .clk,
      .value  ({from, to}),
      .delayed({from_now, to_now})
  );

  delay #(
      .BITS  (PORTS),
      .CLOCKS(ANSWER_CLOCKS + 1)
  ) answered (
      .clk,
      .value  (from_now),
      .delayed(from_answer)
  );

  delay #(
      .BITS  (PORTS),
      .CLOCKS(PATCHES_CLOCKS)
  ) written (
      .clk,
      .value  (from_now),
      .delayed(from_written)
  );

  // One way to carry the scale in a frame for all: the map's of port 0.
  logic [15:0] window, lowered;
  logic [7:0] scale;
  logic [1:0] kind;
  logic changed, floored;
  ingress #(
      .WIDTH      (WIDTH),
      .STORE_BYTES(STORE_BYTES)
  ) pipeline (
      .clk,
      .rst,
      .p(window_params(values[0])),
      .s_tdata(s_axis_tdata),
      .s_tkeep(s_axis_tkeep),
      .s_tlast(s_axis_tlast),
      .s_tuser(1'b0),
      .s_tvalid(s_axis_tvalid),
      .m_tdata(m_axis_tdata),
      .m_tkeep(m_axis_tkeep),
      .m_tlast(m_axis_tlast),
      .m_tvalid(m_axis_tvalid),
      .m_tready(m_axis_tready),
      .m_frame(frame),
      .m_frame_valid(frame_valid),
      .m_start(1'b1),
      .m_started(started),
      .m_patches('0),
      .window,
      .scale,
      .kind,
      .lowered,
      .changed,
      .floored,
      .was_kept,
      .addresses,
      .arrived,
      .arrived_header(header),
      .rewritten,
      .was_floored
  );

  // A scheme for each MAC; the answer is that of the frame's source.
  logic [PORTS-1:0][15:0] lowered_by;
  logic [PORTS-1:0] changed_by, floored_by, clamping, was_clamping;
  logic is_tcp;
  departure_t leaving;
  assign is_tcp  = arrived && header.reason == PASS_NONE;
  assign leaving = {header.bytes, is_tcp, header.offset_flags[7:0], header.payload};

  always_comb begin
    lowered = '0;
    for (int unsigned i = 0; i < PORTS; i++)
    lowered = lowered | (from_answer[i] ? lowered_by[i] : '0);
  end
  assign changed = (from_answer & changed_by) != 0;
  assign floored = (from_answer & floored_by) != 0;

  for (genvar i = 0; i < PORTS; i++) begin : g_scheme
    logic [31:0] queue;
    logic [63:0] left_bytes;
    logic drops;
    always_ff @(posedge clk) begin
      queue <= queue + (pkt_stored[i] ? 32'(bytes_stored[i]) : '0) -
          (pkt_removed[i] ? 32'(bytes_removed[i]) : '0);
      if (pkt_removed[i]) left_bytes <= left_bytes + 64'(bytes_removed[i]);
      if (rst) begin
        queue <= '0;
        left_bytes <= '0;
      end
    end

    port_windows #(
        .SCHEMES(SCHEMES)
    ) windows (
        .clk,
        .rst(prepare[i]),
        .now_ns,
        .values(values[i]),
        .enters(is_tcp && from_now[i]),
        .enters_flags(header.offset_flags[7:0]),
        .enters_data(header.payload != 0),
        .leaves(is_tcp && to_now[i]),
        .departure(leaving),
        .left_bytes,
        .queue_bytes(queue),
        .packet_bytes('0),
        .is_control(1'b1),
        .drops,
        .is_clamping(clamping[i]),
        .window,
        .scale,
        .kind,
        .lowered(lowered_by[i]),
        .changed(changed_by[i]),
        .floored(floored_by[i])
    );

    always_comb begin
      counts[i] = '0;
      counts[i][REG_counter_ingress_packets-FIRST] = {15'b0, arrived && from_now[i]};
      counts[i][REG_counter_acks-FIRST] = {15'b0, arrived && from_now[i] && header_is_ack(header)};
      counts[i][REG_counter_acks_rewritten-FIRST] = {15'b0, rewritten && from_written[i]};
      counts[i][REG_counter_acks_floored-FIRST] = {15'b0, was_floored && from_written[i]};
      counts[i][REG_counter_syns-FIRST] = {15'b0, arrived && from_now[i] && header_is_syn(header)} +
          {15'b0, arrived && to_now[i] && header_is_syn(header)};
      counts[i][REG_counter_zero_windows-FIRST] = {
        15'b0,
        arrived && from_now[i] && header_is_zero_window(
          header, values[0][32*REG_window_wscale_source+:32]
        )
      };
      counts[i][REG_counter_egress_packets-FIRST] = {15'b0, pkt_removed[i]};
      counts[i][REG_counter_egress_bytes-FIRST] = pkt_removed[i] ? bytes_removed[i] : '0;
      counts[i][REG_counter_clamps-FIRST] = {15'b0, clamping[i] && !was_clamping[i]};
    end
  end
  always_ff @(posedge clk) was_clamping <= clamping;
endmodule

`default_nettype wire
