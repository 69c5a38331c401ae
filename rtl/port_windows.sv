// SPDX-License-Identifier: Apache-2.0
// What sets the windows of the ACKs that enter by a port: its scheme, and what that has to know of
// the traffic: flows, the size of segments, time and the queue. Latency: 14 clocks from question to
// answer, one ACK per clock.
`default_nettype none

module port_windows
  import core_pkg::*, types_pkg::*;
#(
    parameter logic [3:0] SCHEMES = '1  // which are built, by number
) (
    input  wire logic                          clk,
    input  wire logic                          rst,           // prepares the schemes
    input  wire logic       [            63:0] now_ns,
    input  wire logic       [32*REGISTERS-1:0] values,
    // A TCP segment that enters, and one that leaves.
    input  wire logic                          enters,
    input  wire logic       [             7:0] enters_flags,
    input  wire logic                          enters_data,
    input  wire logic                          leaves,
    input  wire departure_t                    departure,
    input  wire logic       [            63:0] left_bytes,    // of all frames
    // The queue, and a packet that would join it.
    input  wire logic       [            31:0] queue_bytes,
    input  wire logic       [            31:0] packet_bytes,
    input  wire logic                          is_control,
    output logic                               drops,
    output logic                               is_clamping,
    // An ACK.
    input  wire logic       [            15:0] window,
    input  wire logic       [             7:0] scale,
    input  wire logic       [             1:0] kind,
    output logic            [            15:0] lowered,
    output logic                               changed,
    output logic                               floored
);
  port_params_t   port_p;
  fairq_params_t  fairq_p;
  hscc_params_t   hscc_p;
  window_params_t window_p;
  assign port_p   = port_params(values);
  assign fairq_p  = fairq_params(values);
  assign hscc_p   = hscc_params(values);
  assign window_p = window_params(values);

  logic event_valid, event_ready, event_done;
  logic [2:0] event_kind;
  logic [31:0] event_value, window_bytes, flows;
  logic [15:0] segment_bytes;

  window_scheme #(
      .SCHEMES(SCHEMES)
  ) windows (
      .clk,
      .rst,
      .scheme(port_p.scheme),
      .fairq_p,
      .hscc_p,
      .now_ns,
      .event_valid,
      .event_ready,
      .event_kind,
      .event_value,
      .event_total(left_bytes),
      .event_done,
      .queue_valid(1'b1),
      .queue_bytes,
      .packet_bytes,
      .is_control,
      .drops,
      .is_clamping,
      .window_bytes,
      .window,
      .scale,
      .mss_bytes(segment_bytes),  // without a table of flows: the port's
      .kind,
      .lowered,
      .changed,
      .floored
  );

  port_events events (
      .clk,
      .rst,
      .p(fairq_p),
      .now_ns,
      .queue_bytes,
      .flows,
      .segment_bytes,
      .event_valid,
      .event_ready,
      .event_kind,
      .event_value
  );

  flow_counter counter (
      .clk,
      .rst,
      .now_ns,
      .in_valid(enters),
      .in_flags(enters_flags),
      .in_has_payload(enters_data),
      .out_valid(leaves),
      .out_flags(departure.flags),
      .out_has_payload(departure.payload != 0),
      .expire(1'b1),
      .idle_ns(window_p.idle_ns),
      .flows
  );

  segment segments (
      .clk,
      .rst,
      .now_ns,
      .valid(leaves && departure.payload != 0),
      .size_bytes(departure.payload),
      .is_full((departure.flags & (TCP_FLAG_PSH[7:0] | TCP_FLAG_FIN[7:0])) == 0),
      .bytes(segment_bytes)
  );
endmodule

`default_nettype wire
