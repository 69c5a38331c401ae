// SPDX-License-Identifier: Apache-2.0
// What FairQ has to know, as events, one at a time: a tick that is due, a new number of flows, a new
// size of segments. Ticks first, but none right after another while something else waits: then short
// intervals would keep it waiting. Without FairQ the interval is 0, and there are no ticks.
`default_nettype none

module port_events
  import core_pkg::*;
(
    input  wire logic                 clk,
    input  wire logic                 rst,
    input  wire fairq_params_t        p,
    input  wire logic          [63:0] now_ns,
    input  wire logic          [31:0] queue_bytes,
    input  wire logic          [31:0] flows,
    input  wire logic          [15:0] segment_bytes,  // 0: none has passed
    output logic                      event_valid,
    input  wire logic                 event_ready,
    output logic               [ 2:0] event_kind,
    output logic               [31:0] event_value
);
  logic [63:0] tick_due_ns;
  logic [31:0] flows_sent, tick_ns;
  logic [15:0] segment_sent;
  logic is_due, has_flows, has_segment, has_ticked, accepted;

  assign tick_ns = p.sample_interval_ns != 0 ? p.sample_interval_ns : p.interval_ns;
  assign is_due = tick_ns != 0 && now_ns >= tick_due_ns &&
      !(has_ticked && (has_flows || has_segment));
  assign has_flows = flows != flows_sent;
  assign has_segment = segment_bytes != segment_sent;
  assign event_valid = is_due || has_flows || has_segment;
  assign event_kind = is_due ? 3'd2 : has_flows ? 3'd0 : 3'd1;
  assign event_value = is_due ? queue_bytes : has_flows ? flows : {16'b0, segment_bytes};
  assign accepted = event_valid && event_ready;

  always_ff @(posedge clk) begin
    if (accepted) has_ticked <= is_due;
    if (accepted && is_due) tick_due_ns <= now_ns + {32'b0, tick_ns};
    else if (accepted && has_flows) flows_sent <= flows;
    else if (accepted) segment_sent <= segment_bytes;
    if (rst) begin
      has_ticked   <= 1'b0;
      tick_due_ns  <= '0;
      flows_sent   <= '0;
      segment_sent <= '0;
    end
  end
endmodule

`default_nettype wire
