// SPDX-License-Identifier: Apache-2.0
// The number of flows of a port: SYN-ACKs minus FINs and RSTs, without knowing flows (FairQ §IV-E).
//
// core: flow_counter_on_packet for a packet that enters and one that leaves in the same clock, in
// this order, then flow_counter_expire with the time of some clocks before. A table of flows (core/flow.h) takes 32 bytes of each flow
// and several reads and writes per packet; this takes two registers and no memory, as the paper's
// did, and is as exact as it: it drifts when SYN-ACKs or FINs are repeated or lost. Latency: 1
// clock.
`default_nettype none

module flow_counter
  import core_pkg::*;
(
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [63:0] now_ns,
    input  wire logic        in_valid,
    input  wire logic [ 7:0] in_flags,
    input  wire logic        in_has_payload,
    input  wire logic        out_valid,
    input  wire logic [ 7:0] out_flags,
    input  wire logic        out_has_payload,
    input  wire logic        expire,           // whether the count may restart now
    input  wire logic [31:0] idle_ns,          // after this long without data
    output logic      [31:0] flows
);
  localparam logic [7:0] SYN_ACK = TCP_FLAG_SYN[7:0] | TCP_FLAG_ACK[7:0];
  localparam logic [7:0] ENDS = TCP_FLAG_FIN[7:0] | TCP_FLAG_RST[7:0];

  logic [63:0] last_data_ns, due_ns;  // when the count restarts
  logic in_begins, out_begins, out_ends, has_data, had_data, is_due;
  logic [ 1:0] begins;
  logic [31:0] change;

  assign in_begins = in_valid && (in_flags & SYN_ACK) == SYN_ACK;
  assign out_begins = out_valid && (out_flags & SYN_ACK) == SYN_ACK;
  assign out_ends = out_valid && (out_flags & ENDS) != 0;
  assign has_data = in_begins || out_begins || (in_valid && in_has_payload) ||
      (out_valid && out_has_payload);
  assign begins = {1'b0, in_begins} + {1'b0, out_begins};
  assign change = {30'b0, begins} - {31'b0, out_ends};

  always_ff @(posedge clk) begin
    // The count stays within 0 and its largest value.
    flows <= flows + change;
    if (flows >= -{30'b0, begins} && begins != 0) flows <= '1 - {31'b0, out_ends};
    else if (flows == 0 && begins == 0) flows <= '0;

    if (has_data) last_data_ns <= now_ns;
    had_data <= has_data;
    due_ns   <= last_data_ns + {32'b0, idle_ns};
    is_due   <= now_ns >= due_ns && !has_data && !had_data;
    if (expire && is_due && !has_data) flows <= '0;
    if (rst) begin
      flows <= '0;
      last_data_ns <= '0;
      had_data <= 1'b1;
      is_due <= 1'b0;
    end
  end
endmodule

`default_nettype wire
