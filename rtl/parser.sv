// SPDX-License-Identifier: Apache-2.0
// From a frame's first byte to its TCP options: Ethernet, two VLAN tags, IPv4 with options, IPv6
// with four extension headers, TCP.
//
// Verdicts are those of bpf/parse.h and bpf/options.h without tunnels: what is not understood
// passes, with a reason (PASS_*). On a wire there are no super-packets, so an IPv4 length of 0 is
// malformed. The parser watches a stream; it walks 16 bits at a time, WIDTH / 16 steps per clock,
// because every header's length is a multiple of that. The state holds the fields found so far.
// Latency: 1 clock after the last word; one word per clock.
`default_nettype none

module parser
  import core_pkg::*, types_pkg::*;
#(
    parameter int unsigned WIDTH     = 64,
    parameter int unsigned MAX_BYTES = 9018  // of a frame without FCS
) (
    input  wire logic               clk,
    input  wire logic               rst,
    input  wire logic [  WIDTH-1:0] tdata,
    input  wire logic [WIDTH/8-1:0] tkeep,
    input  wire logic               tlast,
    input  wire logic               tuser,         // at tlast: the frame is bad
    input  wire logic               transfer,      // tvalid and tready
    output logic                    header_valid,
    output header_t                 header
);
  if (WIDTH < 64 || WIDTH > 512 || (WIDTH & (WIDTH - 1)) != 0) begin : g_bad_width
    $fatal(1, "WIDTH must be 64, 128, 256 or 512");
  end

  localparam logic [15:0] VLAN = 16'h8100, PROVIDER_VLAN = 16'h88a8, IPV4 = 16'h0800;
  localparam logic [15:0] IPV6 = 16'h86dd;
  localparam logic [7:0] HOP = 8'd0, TCP = 8'd6, UDP = 8'd17, ROUTING = 8'd43, FRAGMENT = 8'd44;
  localparam logic [7:0] DESTINATION = 8'd60;
  localparam logic [7:0] OPTION_END = 8'd0, OPTION_NOP = 8'd1, OPTION_MSS = 8'd2;
  localparam logic [7:0] OPTION_SCALE = 8'd3, OPTION_MD5 = 8'd19, OPTION_AO = 8'd29;
  localparam logic [10:0] MAX_AT = 11'd512;  // headers begin within 1024 bytes, as in parse.h

  typedef enum logic [2:0] {
    ETHERNET,
    TAG,
    V4,
    V6,
    EXTENSION,
    SEGMENT,
    OPTIONS,
    DONE
  } phase_e;
  typedef enum logic [1:0] {
    KIND,
    LENGTH,
    BODY
  } option_e;

  typedef struct packed {
    phase_e      phase;
    logic [10:0] at;            // words so far, saturating
    logic [10:0] skip;          // words of the present header that do not matter
    logic [4:0]  k;             // word within the present header
    logic [1:0]  tags;
    logic [2:0]  extensions;
    logic        is_end_known;
    logic [17:0] ip_end;        // bytes from the frame's start
    logic [15:0] left;          // bytes of the IP payload from the present header on
    logic        is_overrun;    // extension headers are longer than the payload
    option_e     option;
    logic [7:0]  option_kind;
    logic [7:0]  option_left;   // bytes of its body
    logic [5:0]  options_left;
    logic [15:0] body;
    header_t     h;
  } state_t;

  state_t state, next, found;

  // Within one clock `next` walks from word to word. It is changed in place: functions that return
  // the whole state would be copied for each word.
  logic [15:0] word, header_bytes, extension_bytes;
  logic [7:0] octet, following;
  logic follows_v6;

  always_comb begin
    next = state;
    word = '0;
    octet = '0;
    following = '0;
    header_bytes = '0;
    extension_bytes = '0;
    follows_v6 = 1'b0;
    for (int unsigned i = 0; i < WIDTH / 16; i++) begin
      word = {tdata[16*i+:8], tdata[16*i+8+:8]};
      follows_v6 = 1'b0;
      if (!tkeep[2*i+1]) begin
        // Half a word, the frame's last byte, completes no header.
      end else if (next.skip != 0) next.skip = next.skip - 11'd1;
      else if (next.k == 0 && next.at > MAX_AT && next.phase != DONE && next.phase != OPTIONS) begin
        next.phase = DONE;
        next.h.reason = PASS_TRUNCATED;
      end else
        case (next.phase)
          ETHERNET: begin
            if (next.k < 5'd3) next.h.mac_destination = {next.h.mac_destination[31:0], word};
            else if (next.k < 5'd6) next.h.mac_source = {next.h.mac_source[31:0], word};
            next.k = next.k + 5'd1;
            if (next.k == 5'd7) begin
              next.k = '0;
              next.h.ip_at = next.at[9:0] + 10'd1;
              next.h.reason = PASS_NOT_IP;
              next.phase = DONE;
              if (word == VLAN || word == PROVIDER_VLAN) begin
                next.h.reason = PASS_TOO_DEEP;
                if (next.tags != 2'd2) next.phase = TAG;
                next.tags = next.tags + 2'd1;
              end else if (word == IPV4) next.phase = V4;
              else if (word == IPV6) next.phase = V6;
            end
          end
          TAG: begin
            next.phase = ETHERNET;
            next.k = 5'd6;
          end
          V4: begin
            header_bytes = {10'b0, next.h.ip_word[11:8], 2'b0};
            case (next.k)
              5'd0: next.h.ip_word = word;
              5'd1: next.left = word;
              5'd3: next.body = word;  // fragment
              5'd4: next.h.protocol = word[7:0];
              5'd5: next.h.ip_checksum = word;
              5'd6, 5'd7: next.h.source = {next.h.source[15:0], word};
              5'd8, 5'd9: next.h.destination = {next.h.destination[15:0], word};
              default: ;
            endcase
            next.k = next.k + 5'd1;
            if (next.k == 5'd10) begin
              next.k = '0;
              next.phase = DONE;
              if (next.h.ip_word[15:12] != 4'd4 || next.h.ip_word[11:8] < 4'd5 ||
                  next.left < header_bytes)
                next.h.reason = PASS_MALFORMED;
              else begin
                next.h.is_ip = 1'b1;
                next.is_end_known = 1'b1;
                next.ip_end = {7'b0, next.h.ip_at, 1'b0} + {2'b0, next.left};
                next.left = next.left - header_bytes;
                next.skip = {6'b0, next.h.ip_word[11:8] - 4'd5, 1'b0};
                if ((next.body & 16'h3fff) != 0) next.h.reason = PASS_FRAGMENT;
                else if (next.h.protocol != TCP) next.h.reason = PASS_NOT_TCP;
                else next.phase = SEGMENT;
              end
            end
          end
          V6: begin
            if (next.k == 5'd0) next.h.ip_word = word;
            else if (next.k == 5'd2) next.left = word;
            else if (next.k == 5'd3) next.h.protocol = word[15:8];
            else if (next.k >= 5'd12) begin
              if (next.k[0]) next.h.destination[15:0] = next.h.destination[15:0] ^ word;
              else next.h.destination[31:16] = next.h.destination[31:16] ^ word;
            end else if (next.k >= 5'd4) begin
              if (next.k[0]) next.h.source[15:0] = next.h.source[15:0] ^ word;
              else next.h.source[31:16] = next.h.source[31:16] ^ word;
            end
            next.k = next.k + 5'd1;
            if (next.k == 5'd20) begin
              next.h.is_v6 = 1'b1;
              if (next.h.ip_word[15:12] != 4'd6) begin
                next.phase = DONE;
                next.h.reason = PASS_MALFORMED;
              end else begin
                next.h.is_ip = 1'b1;
                next.is_end_known = 1'b1;
                next.ip_end = {7'b0, next.h.ip_at, 1'b0} + 18'd40 + {2'b0, next.left};
                follows_v6 = 1'b1;
                following = next.h.protocol;
              end
            end
          end
          EXTENSION: begin
            extension_bytes = {4'b0, {1'b0, next.body[7:0]} + 9'd1, 3'b0};
            if (next.k == 5'd0) begin
              next.body = word;  // next header and length
              next.k = 5'd1;
            end else if (next.h.protocol == ROUTING && word[7:0] != 0) begin
              next.phase = DONE;
              next.h.reason = PASS_TOO_DEEP;  // the addresses are not the flow's
            end else begin
              next.extensions = next.extensions + 3'd1;
              next.is_overrun = next.is_overrun || next.left < extension_bytes;
              next.left = next.left - extension_bytes;
              next.skip = extension_bytes[11:1] - 11'd2;
              follows_v6 = 1'b1;
              following = next.body[15:8];
            end
          end
          SEGMENT: begin
            header_bytes = {10'b0, next.h.offset_flags[15:12], 2'b0};
            case (next.k)
              5'd0: begin
                next.h.tcp_at = next.at[9:0];
                next.h.source_port = word;
              end
              5'd1: begin
                next.h.destination_port = word;
                next.h.has_ports = 1'b1;
              end
              5'd6: next.h.offset_flags = word;
              5'd7: next.h.window = word;
              5'd8: next.h.checksum = word;
              default: ;
            endcase
            next.k = next.k + 5'd1;
            if (next.k == 5'd10) begin
              next.h.payload = next.left - header_bytes;
              next.options_left = header_bytes[5:0] - 6'd20;
              next.h.reason = PASS_NONE;
              next.phase = header_bytes == 16'd20 ? DONE : OPTIONS;
              if (header_bytes < 16'd20 || header_bytes > next.left) begin
                next.phase = DONE;
                next.h.reason = PASS_MALFORMED;
              end
            end
          end
          OPTIONS: begin
            // A bad list is read up to where it contradicts itself.
            for (int unsigned half = 0; half < 2; half++)
            if (next.phase == OPTIONS) begin
              octet = half == 0 ? word[15:8] : word[7:0];
              case (next.option)
                KIND: begin
                  next.option_kind = octet;
                  if (octet == OPTION_END) next.phase = DONE;
                  else if (octet != OPTION_NOP) next.option = LENGTH;
                end
                LENGTH: begin
                  next.option_left = octet - 8'd2;
                  // `options_left` counts this byte too, and the kind is behind.
                  if (octet < 8'd2 || octet > {2'b0, next.options_left} + 8'd1) next.phase = DONE;
                  else begin
                    if (next.option_kind == OPTION_MD5 || next.option_kind == OPTION_AO)
                      next.h.is_authenticated = 1'b1;
                    next.option = octet == 8'd2 ? KIND : BODY;
                    // Only options of the right length count.
                    if ((next.option_kind == OPTION_MSS && octet != 8'd4) ||
                        (next.option_kind == OPTION_SCALE && octet != 8'd3))
                      next.option_kind = OPTION_NOP;
                  end
                end
                default: begin
                  next.body = {next.body[7:0], octet};
                  next.option_left = next.option_left - 8'd1;
                  if (next.option_left == 8'd0) begin
                    next.option = KIND;
                    if (next.option_kind == OPTION_MSS) next.h.mss = next.body;
                    if (next.option_kind == OPTION_SCALE) begin
                      next.h.scale = octet;
                      next.h.scale_at = {1'b0, next.h.offset_flags[15:12], 2'b0} -
                          {1'b0, next.options_left};
                    end
                  end
                end
              endcase
              next.options_left = next.options_left - 6'd1;
              if (next.options_left == 6'd0) next.phase = DONE;
            end
          end
          default: ;
        endcase

      // After the IPv6 header or an extension header.
      if (follows_v6) begin
        next.h.protocol = following;
        next.k = '0;
        next.phase = DONE;
        if (following == TCP && !next.is_overrun) next.phase = SEGMENT;
        else if (following == TCP) next.h.reason = PASS_MALFORMED;
        else if (following == UDP) next.h.reason = PASS_NOT_TCP;
        else if (next.extensions == 3'd4) next.h.reason = PASS_TOO_DEEP;
        else if (following == FRAGMENT) next.h.reason = PASS_FRAGMENT;
        else if (following == HOP || following == ROUTING || following == DESTINATION)
          next.phase = EXTENSION;
        else next.h.reason = PASS_NOT_TCP;
      end
      if (tkeep[2*i+1] && next.at != '1) next.at = next.at + 11'd1;
    end
    for (int unsigned i = 0; i < WIDTH / 8; i++) begin
      if (tkeep[i] && next.h.bytes != '1) next.h.bytes = next.h.bytes + 16'd1;
    end

    found = next;
    found.h.is_bad = tuser || next.h.bytes > MAX_BYTES[15:0];
    if (next.phase != DONE || (next.is_end_known && next.ip_end > {2'b0, next.h.bytes}))
      found.h.reason = PASS_TRUNCATED;
  end

  always_ff @(posedge clk) begin
    header_valid <= transfer && tlast && !rst;
    if (transfer && tlast) header <= found.h;
    if (transfer) state <= next;
    if (rst || (transfer && tlast)) begin
      state <= '0;
      state.h.scale <= SCALE_NONE;
    end
  end
endmodule

`default_nettype wire
