// SPDX-License-Identifier: Apache-2.0
// A port's window scheme: FairQ or HSCC by number, and the field that an ACK gets.
//
// core: x_on_ack of the scheme. Latency: 14 clocks (9 for limit and floor, 1 to choose, 4 for the
// field), one ACK per clock.
`default_nettype none

module window_scheme
  import core_pkg::*;
#(
    parameter logic [3:0] SCHEMES = '1  // which are built, by number
) (
    input  wire logic                 clk,
    input  wire logic                 rst,           // prepares both schemes
    input  wire logic          [31:0] scheme,
    input  wire fairq_params_t        fairq_p,
    input  wire hscc_params_t         hscc_p,
    input  wire logic          [63:0] now_ns,
    // Events of FairQ; HSCC takes the number of flows.
    input  wire logic                 event_valid,
    output logic                      event_ready,
    input  wire logic          [ 2:0] event_kind,
    input  wire logic          [31:0] event_value,
    input  wire logic          [63:0] event_total,
    output logic                      event_done,
    // The queue of HSCC, and a packet that would join it.
    input  wire logic                 queue_valid,
    input  wire logic          [31:0] queue_bytes,
    input  wire logic          [31:0] packet_bytes,
    input  wire logic                 is_control,
    output logic                      drops,
    output logic                      is_clamping,
    output logic               [31:0] window_bytes,
    // An ACK.
    input  wire logic          [15:0] window,
    input  wire logic          [ 7:0] scale,
    input  wire logic          [15:0] mss_bytes,
    input  wire logic          [ 1:0] kind,
    output logic               [15:0] lowered,
    output logic                      changed,
    output logic                      floored
);
  logic [31:0] fairq_limit, fairq_floor, hscc_limit, hscc_floor, limit, floor;
  logic [31:0] hscc_flows;
  logic hscc_drops, hscc_clamps, is_fairq, is_hscc;
  logic [31:0] fairq_window;

  if (SCHEMES[SCHEME_FAIRQ]) begin : g_fairq
    fairq fairq_port (
        .clk,
        .rst,
        .p(fairq_p),
        .event_valid,
        .event_ready,
        .event_kind,
        .event_value,
        .event_total,
        .now_ns,
        .event_done,
        .scale,
        .mss_bytes,
        .kind,
        .limit(fairq_limit),
        .floor(fairq_floor),
        .window_bytes(fairq_window)
    );
  end else begin : g_no_fairq
    assign {event_ready, event_done, fairq_limit, fairq_floor, fairq_window} = {1'b1, 97'b0};
  end

  if (SCHEMES[SCHEME_HSCC]) begin : g_hscc
    hscc hscc_port (
        .clk,
        .rst,
        .p(hscc_p),
        .now_ns,
        .queue_valid,
        .queue_bytes,
        .is_clamping(hscc_clamps),
        .flows(hscc_flows),
        .scale,
        .mss_bytes,
        .kind,
        .limit(hscc_limit),
        .floor(hscc_floor),
        .packet_bytes,
        .is_control,
        .drops(hscc_drops)
    );
  end else begin : g_no_hscc
    assign {hscc_clamps, hscc_limit, hscc_floor, hscc_drops} = '0;
  end

  assign drops = is_hscc && hscc_drops;
  assign is_clamping = is_hscc && hscc_clamps;
  assign window_bytes = is_fairq ? fairq_window : TCP_MAX_WINDOW;

  // The question waits for limit and floor.
  logic [15:0] held_window;
  logic [ 7:0] held_scale;

  always_ff @(posedge clk) begin
    is_fairq <= scheme == SCHEME_FAIRQ;
    is_hscc <= scheme == SCHEME_HSCC;
    limit <= is_fairq ? fairq_limit : is_hscc ? hscc_limit : '1;
    floor <= is_fairq ? fairq_floor : hscc_floor;
    if (event_valid && event_kind == 3'd0) hscc_flows <= event_value;
    if (rst) hscc_flows <= '0;
  end

  delay #(
      .BITS  (24),
      .CLOCKS(10)
  ) question (
      .clk,
      .value  ({window, kind == TCP_ACK_SYN[1:0] ? 8'd0 : scale}),
      .delayed({held_window, held_scale})
  );

  lower_window lower (
      .clk,
      .window(held_window),
      .scale (held_scale),
      .limit,
      .floor,
      .lowered,
      .changed,
      .floored
  );
endmodule

`default_nettype wire
