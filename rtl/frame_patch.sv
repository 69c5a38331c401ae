// SPDX-License-Identifier: Apache-2.0
// Writes up to PATCHES 16-bit words into a passing frame, each at another place. The patches hold from
// the frame's first word to its last. Latency: 2 clocks; one word per clock, as long as the sink takes
// them.
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

  // 1: which patch goes into which lane. 2: the patched word.
  logic [WIDTH-1:0] tdata_1, patched;
  logic [WIDTH/8-1:0] tkeep_1;
  logic tlast_1, tvalid_1, advances;
  logic [LANES-1:0][PATCHES-1:0] hits_1;
  logic [PATCHES-1:0][15:0] value_1, mask_1;

  assign advances = !m_tvalid || m_tready;
  assign s_tready = !tvalid_1 || advances;

  always_comb begin
    patched = tdata_1;
    for (int unsigned lane = 0; lane < LANES; lane++) begin
      logic [15:0] value, mask;
      {value, mask} = '0;
      for (int unsigned i = 0; i < PATCHES; i++)
      if (hits_1[lane][i]) begin
        value = value | value_1[i];
        mask  = mask | mask_1[i];
      end
      patched[16*lane+:16] = (tdata_1[16*lane+:16] & ~mask) | value;
    end
  end

  always_ff @(posedge clk) begin
    if (s_tready) begin
      tvalid_1 <= s_tvalid;
      tdata_1  <= s_tdata;
      tkeep_1  <= s_tkeep;
      tlast_1  <= s_tlast;
      for (int unsigned i = 0; i < PATCHES; i++) begin
        for (int unsigned lane = 0; lane < LANES; lane++)
        hits_1[lane][i] <= patches[i].valid && !is_beyond &&
            patches[i].at == {number, lane[LANE_BITS-1:0]};
        // The first byte is lowest.
        mask_1[i] <= {{8{patches[i].enable[0]}}, {8{patches[i].enable[1]}}};
        value_1[i] <= {
          patches[i].value[7:0] & {8{patches[i].enable[0]}},
          patches[i].value[15:8] & {8{patches[i].enable[1]}}
        };
      end
    end
    if (s_tvalid && s_tready) begin
      {is_beyond, number} <= {is_beyond || number == '1, number + 1'b1};
      if (s_tlast) {is_beyond, number} <= '0;
    end
    if (advances) begin
      m_tvalid <= tvalid_1;
      m_tdata  <= patched;
      m_tkeep  <= tkeep_1;
      m_tlast  <= tlast_1;
    end
    if (rst) begin
      tvalid_1 <= 1'b0;
      m_tvalid <= 1'b0;
      {is_beyond, number} <= '0;
    end
  end
endmodule

`default_nettype wire
