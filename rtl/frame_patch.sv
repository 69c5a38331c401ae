// SPDX-License-Identifier: Apache-2.0
// Writes up to PATCHES 16-bit words into a passing frame. The patches hold from the frame's first
// word to its last. Latency: 1 clock; one word per clock, as long as the sink takes them.
`default_nettype none

module frame_patch
  import types_pkg::*;
#(
    parameter int unsigned WIDTH   = 64,
    parameter int unsigned PATCHES = 7
) (
    input  wire logic                 clk,
    input  wire logic                 rst,
    input  wire patch_t [PATCHES-1:0] patches,
    input  wire logic   [  WIDTH-1:0] s_tdata,
    input  wire logic   [WIDTH/8-1:0] s_tkeep,
    input  wire logic                 s_tlast,
    input  wire logic                 s_tvalid,
    output logic                      s_tready,
    output logic        [  WIDTH-1:0] m_tdata,
    output logic        [WIDTH/8-1:0] m_tkeep,
    output logic                      m_tlast,
    output logic                      m_tvalid,
    input  wire logic                 m_tready
);
  localparam int unsigned LANES = WIDTH / 16;
  localparam int unsigned LANE_BITS = $clog2(LANES);

  logic [9-LANE_BITS:0] number;  // of the word; patches are near the start
  logic is_beyond;
  logic [WIDTH-1:0] patched;

  assign s_tready = !m_tvalid || m_tready;

  always_comb begin
    patched = s_tdata;
    for (int unsigned i = 0; i < PATCHES; i++)
    for (int unsigned lane = 0; lane < LANES; lane++)
    if (patches[i].valid && !is_beyond && patches[i].at == {number, lane[LANE_BITS-1:0]}) begin
      if (patches[i].enable[1]) patched[16*lane+:8] = patches[i].value[15:8];
      if (patches[i].enable[0]) patched[16*lane+8+:8] = patches[i].value[7:0];
    end
  end

  always_ff @(posedge clk) begin
    if (s_tready) begin
      m_tvalid <= s_tvalid;
      m_tdata  <= patched;
      m_tkeep  <= s_tkeep;
      m_tlast  <= s_tlast;
    end
    if (s_tvalid && s_tready) begin
      {is_beyond, number} <= {is_beyond || number == '1, number + 1'b1};
      if (s_tlast) {is_beyond, number} <= '0;
    end
    if (rst) begin
      m_tvalid <= 1'b0;
      {is_beyond, number} <= '0;
    end
  end
endmodule

`default_nettype wire
