// SPDX-License-Identifier: Apache-2.0
// Unsigned division, BITS bits of the quotient per clock (FairQ §IV-E, DIV_32).
//
// Latency: DIVIDEND / BITS + 2 clocks; 18 for 32 bits with two, as the paper's. With one the clock may
// be twice as fast. PIPELINED: a stage for each step, so one division may start every clock.
// Otherwise one step is used again and again, and `ready` is low meanwhile. A divisor of 0 gives all
// ones.
`default_nettype none

module div_32 #(
    parameter int unsigned DIVIDEND  = 32,  // bits, a multiple of BITS
    parameter int unsigned DIVISOR   = 32,  // bits
    parameter int unsigned BITS      = 2,
    parameter bit          PIPELINED = 1
) (
    input  wire logic                clk,
    input  wire logic                rst,
    input  wire logic                start,
    output logic                     ready,
    input  wire logic [DIVIDEND-1:0] dividend,
    input  wire logic [ DIVISOR-1:0] divisor,
    output logic                     done,
    output logic      [DIVIDEND-1:0] quotient
);
  localparam int unsigned STEPS = DIVIDEND / BITS;

  if (DIVIDEND % BITS != 0) begin : g_odd
    $fatal(1, "DIVIDEND must be a multiple of BITS");
  end

  // What is left of the dividend moves out at the top, the quotient moves in at the bottom.
  typedef struct packed {
    logic [DIVISOR-1:0]  remainder;
    logic [DIVIDEND-1:0] bits;
  } partial_t;

  function automatic partial_t step_of(input partial_t from, input logic [DIVISOR-1:0] by);
    logic [DIVISOR:0] wide, less;
    step_of = from;
    for (int unsigned i = 0; i < BITS; i++) begin
      wide = {step_of.remainder, step_of.bits[DIVIDEND-1]};
      less = wide - {1'b0, by};
      step_of.remainder = wide >= {1'b0, by} ? less[DIVISOR-1:0] : wide[DIVISOR-1:0];
      step_of.bits = {step_of.bits[DIVIDEND-2:0], wide >= {1'b0, by}};
    end
  endfunction

  if (PIPELINED) begin : g_pipeline
    partial_t               partial  [STEPS+1];
    logic     [DIVISOR-1:0] by       [STEPS+1];
    logic     [    STEPS:0] is_valid;

    assign ready = 1'b1;
    always_ff @(posedge clk) begin
      partial[0] <= {{DIVISOR{1'b0}}, dividend};
      by[0] <= divisor;
      is_valid <= rst ? '0 : {is_valid[STEPS-1:0], start};
      for (int unsigned i = 0; i < STEPS; i++) begin
        partial[i+1] <= step_of(partial[i], by[i]);
        by[i+1] <= by[i];
      end
      quotient <= partial[STEPS].bits;
      done <= is_valid[STEPS] && !rst;
    end
  end else begin : g_serial
    partial_t                   partial;
    logic     [    DIVISOR-1:0] by;
    logic     [$clog2(STEPS):0] left;
    logic                       is_busy;

    assign ready = !is_busy && !done;
    always_ff @(posedge clk) begin
      done <= 1'b0;
      if (is_busy) begin
        if (left == 0) begin
          quotient <= partial.bits;
          done <= 1'b1;
          is_busy <= 1'b0;
        end else begin
          partial <= step_of(partial, by);
          left <= left - 1'b1;
        end
      end else if (start && ready) begin
        partial <= {{DIVISOR{1'b0}}, dividend};
        by <= divisor;
        left <= STEPS[$clog2(STEPS):0];
        is_busy <= 1'b1;
      end
      if (rst) begin
        is_busy <= 1'b0;
        done <= 1'b0;
      end
    end
  end
endmodule

`default_nettype wire
