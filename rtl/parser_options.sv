// SPDX-License-Identifier: Apache-2.0
// A stage of the parser: TCP's options, from their 40 bytes.
//
// Four bytes are a group. A reader takes a group per clock and hands the rest to the next reader;
// each has as many groups as there are clocks between two frames with options at least. What counts
// is the last option of a kind with the right length; a bad list is read up to where it contradicts
// itself. Latency: CLOCKS; a frame may start every `GROUPS` clocks.
`default_nettype none

module parser_options #(
    parameter int unsigned WIDTH  = 64,
    parameter int unsigned CLOCKS = 14
) (
    input  wire logic             clk,
    input  wire logic             start,
    input  wire logic [ 3:0]      offset,           // of the data, in words of 32 bits
    input  wire logic [39:0][7:0] options,
    output logic                  has_scale,
    output logic      [ 7:0]      scale,
    output logic      [ 5:0]      scale_place,      // of its value, bytes from the options' start
    output logic                  is_authenticated
);
  localparam int unsigned GROUPS = WIDTH == 64 ? 5 : WIDTH == 512 ? 1 : 2;  // of a reader
  localparam int unsigned READERS = 10 / GROUPS;
  localparam logic [7:0] KIND_END = 8'd0, KIND_NOP = 8'd1, KIND_SCALE = 8'd3;
  localparam logic [7:0] KIND_MD5 = 8'd19, KIND_AO = 8'd29;

  if (CLOCKS != 4 + GROUPS * READERS) begin : g_bad_latency
    $fatal(1, "a group takes a clock, and each four from its bytes to what it found");
  end

  // A place among the four of a group.
  typedef struct packed {
    logic       stops;
    logic [5:0] jump;
    logic       is_scale;
    logic       is_authentic;
  } place_t;
  // From a place to the end of its group.
  typedef struct packed {
    logic       stops;
    logic [5:0] skip;     // bytes of the next groups
    logic [3:0] visited;
  } path_t;
  typedef struct packed {
    logic       has_scale;
    logic [7:0] scale;
    logic [5:0] place;
    logic       is_authentic;
  } found_t;

  logic [READERS:0][39:0][7:0] bytes_at;
  logic [READERS:0][5:0] left_at;  // bytes of options, from these on
  logic [READERS:0] start_at;
  logic [READERS:0] stops_at;
  logic [READERS:0][5:0] skip_at;
  found_t [READERS:0] found_at;
  assign bytes_at[0] = options;
  assign left_at[0]  = offset < 4'd5 ? '0 : {offset - 4'd5, 2'b0};
  assign start_at[0] = start;
  assign stops_at[0] = 1'b0;
  assign skip_at[0]  = '0;
  assign found_at[0] = '0;

  for (genvar r = 0; r < READERS; r++) begin : g_reader
    // The bytes that are left, the next group first.
    logic [39:0][7:0] bytes;
    logic [5:0] left;
    logic [GROUPS+3:0] started;  // so many clocks ago
    logic [5:0] base, base_2, base_3, base_4;  // the group's first byte
    assign bytes_at[r+1] = {32'b0, bytes[39:4]};
    assign left_at[r+1]  = left < 6'd4 ? '0 : left - 6'd4;
    assign start_at[r+1] = started[GROUPS-1];

    place_t [3:0] places, places_3, places_4;
    path_t [3:0] paths, paths_3;
    logic [3:0] fits;  // an option that begins here
    logic [3:0] visited_4;
    logic [3:0][7:0] values_2, values_3, values_4;
    logic stops;
    logic [5:0] skip;
    found_t found;
    assign stops_at[r+1] = stops;
    assign skip_at[r+1]  = skip;
    assign found_at[r+1] = found;

    // What is known before this group: from the reader before, for the first one.
    logic was_stopped;
    logic [5:0] skips;
    found_t earlier;
    assign was_stopped = started[2] ? stops_at[r] : stops;
    assign skips = started[2] ? skip_at[r] : skip;
    assign earlier = started[3] ? found_at[r] : found;

    always_comb
      for (int unsigned i = 0; i < 4; i++)
        fits[i] = bytes[i+1][7:6] == 0 && bytes[i+1][5:1] != 0 &&
            {1'b0, bytes[i+1][5:0]} + 7'(i) <= {1'b0, left};

    always_comb begin
      paths = '0;
      for (int i = 3; i >= 0; i--) begin
        paths[i].visited[i] = 1'b1;
        paths[i].stops = places[i].stops;
        paths[i].skip = places[i].jump - 6'(4 - i);
        for (int k = i + 1; k < 4; k++)
        if (!places[i].stops && places[i].jump == 6'(k - i)) begin
          paths[i] = paths[k];
          paths[i].visited[i] = 1'b1;
        end
      end
    end

    always_ff @(posedge clk) begin
      started <= {started[GROUPS+2:0], start_at[r]};

      // 1: the bytes.
      bytes <= start_at[r] ? bytes_at[r] : {32'b0, bytes[39:4]};
      left <= start_at[r] ? left_at[r] : left < 6'd4 ? '0 : left - 6'd4;
      base <= start_at[r] ? 6'(4 * GROUPS * r) : base + 6'd4;

      // 2: what an option at each place would be.
      for (int unsigned i = 0; i < 4; i++) begin
        places[i].stops <= 6'(i) >= left || bytes[i] == KIND_END ||
            (bytes[i] != KIND_NOP && !fits[i]);
        places[i].jump <= bytes[i] == KIND_NOP ? 6'd1 : bytes[i+1][5:0];
        places[i].is_scale <= fits[i] && bytes[i] == KIND_SCALE && bytes[i+1] == 8'd3;
        places[i].is_authentic <= fits[i] && (bytes[i] == KIND_MD5 || bytes[i] == KIND_AO);
      end
      base_2 <= base;
      values_2 <= bytes[5:2];

      // 3: where the list goes from each place.
      places_3 <= places;
      paths_3 <= paths;
      base_3 <= base_2;
      values_3 <= values_2;

      // 4: where it goes.
      visited_4 <= '0;
      stops <= was_stopped;
      skip <= skips - 6'd4;
      if (!was_stopped && skips < 6'd4) begin
        visited_4 <= paths_3[skips[1:0]].visited;
        stops <= paths_3[skips[1:0]].stops;
        skip <= paths_3[skips[1:0]].skip;
      end
      places_4 <= places_3;
      base_4 <= base_3;
      values_4 <= values_3;

      // 5: what was on the way.
      found <= earlier;
      for (int unsigned i = 0; i < 4; i++)
      if (visited_4[i]) begin
        if (places_4[i].is_scale) begin
          found.has_scale <= 1'b1;
          found.scale <= values_4[i];
          found.place <= base_4 + 6'(i + 2);
        end
        if (places_4[i].is_authentic) found.is_authentic <= 1'b1;
      end
    end
  end

  logic has_started;
  delay #(
      .BITS  (1),
      .CLOCKS(CLOCKS)
  ) start_of (
      .clk,
      .value  (start),
      .delayed(has_started)
  );
  assign {has_scale, scale, scale_place, is_authenticated} = has_started ? found_at[READERS] : '0;
endmodule

`default_nettype wire
