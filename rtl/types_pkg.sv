// SPDX-License-Identifier: Apache-2.0
// What the blocks of the switch exchange about a frame.
package types_pkg;
  // Found by the parser. Words are in host order; places are in 16-bit words from the frame's start.
  typedef struct packed {
    logic [47:0] destination;
    logic [47:0] source;
  } addresses_t;

  typedef struct packed {
    logic        is_ip;        // the IP header is known
    logic        is_v6;
    logic [9:0]  ip_at;
    logic [15:0] ip_word;      // the first of the IP header
    logic [15:0] ip_checksum;  // IPv4
    logic [31:0] source;       // of IPv6: the address folded by exclusive or
    logic [31:0] destination;
  } ip_t;

  typedef struct packed {
    logic [15:0] bytes;             // of the frame, without its FCS
    logic [3:0]  reason;            // PASS_NONE: TCP, all below is known
    logic [15:0] source_port;
    logic [15:0] destination_port;
    logic [9:0]  tcp_at;
    logic [15:0] offset_flags;      // data offset, reserved bits, flags
    logic [15:0] window;
    logic [15:0] checksum;
    logic [15:0] payload;           // bytes
    logic        has_scale;         // option
    logic [7:0]  scale;
    logic [6:0]  scale_at;          // of its value, bytes from the start of the TCP header
    logic        is_authenticated;  // TCP-MD5 or TCP-AO
  } header_t;

  // Words of a frame in the parser, with the words themselves apart from it.
  typedef struct packed {
    logic       valid;
    logic       first;
    logic       last;
    logic [8:0] index;  // of these words in the frame, saturating
  } beat_t;

  // How far a frame's headers are understood, with the words so far.
  typedef struct packed {
    logic        is_done;     // for the reason, which is not PASS_NONE
    logic [3:0]  reason;
    logic        is_active;   // the next header begins at `at`
    logic        is_tcp;      // otherwise an extension header of IPv6
    logic        is_routing;
    logic [10:0] at;          // in 16-bit words from the frame's start
  } walk_t;

  // What is known of a frame that waits to leave its input.
  typedef struct packed {
    logic [15:0] bytes;
    logic        is_tcp;
    logic [7:0]  flags;
    logic [15:0] payload;
    logic [15:0] source_port;
    logic [15:0] destination_port;
    ip_t         ip;
  } frame_t;

  // Clocks from a frame's last word to its addresses, its IP header and the rest; from a question to
  // a scheme until its answer; from a header to its patches.
  localparam int unsigned ADDRESSES_CLOCKS = 2, IP_CLOCKS = 7, HEADER_CLOCKS = 38;
  localparam int unsigned ANSWER_CLOCKS = 14, PATCHES_CLOCKS = 17;

  // What is counted of a frame that leaves.
  typedef struct packed {
    logic [15:0] bytes;
    logic        is_tcp;
    logic [7:0]  flags;
    logic [15:0] payload;
  } departure_t;

  // What bpf/port.h counts of a segment that enters: `syns`; `acks`, of which SYNs are; and
  // `zero_windows`, where the window's upper bits may be its scale.
  function automatic logic header_is_syn(input header_t header);
    header_is_syn = header.reason == core_pkg::PASS_NONE &&
        (header.offset_flags[7:0] & core_pkg::TCP_FLAG_SYN[7:0]) != 0;
  endfunction
  function automatic logic header_is_ack(input header_t header);
    header_is_ack = header_is_syn(header) ||
        (header.reason == core_pkg::PASS_NONE &&
         (header.offset_flags[7:0] & core_pkg::TCP_FLAG_ACK[7:0]) != 0);
  endfunction
  function automatic logic header_is_zero_window(input header_t header,
                                                 input logic [31:0] wscale_source);
    header_is_zero_window = header_is_ack(header) &&
        (header.offset_flags[7:0] & core_pkg::TCP_FLAG_RST[7:0]) == 0 &&
        (wscale_source == core_pkg::WSCALE_WINDOW_BITS && !header_is_syn(header) ?
         header.window[11:0] == 0 : header.window == 0);
  endfunction

  // A 16-bit word that leaves changed.
  typedef struct packed {
    logic        valid;
    logic [9:0]  at;
    logic [15:0] value;
    logic [1:0]  enable;  // bit 1: the first byte
  } patch_t;
endpackage
