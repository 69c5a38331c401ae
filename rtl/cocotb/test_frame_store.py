# SPDX-License-Identifier: Apache-2.0
"""The store with streams of cocotbext-axi, on two simulators: whole frames, in order, or none."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def stores_frames(dut: object) -> None:
    """Frames of all lengths leave unchanged, while source and sink wait now and then."""
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    dut.is_bad.value = 0
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s"), dut.clk, dut.rst)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m"), dut.clk, dut.rst)
    for side in (source, sink):
        side.set_pause_generator(random.random() < 0.4 for _ in iter(int, 1))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    frames = [random.randbytes(size) for size in [*range(32, 100), 1514, 9018]]
    for frame in frames:
        await source.send(AxiStreamFrame(frame))
    for frame in frames:
        assert bytes((await sink.recv()).tdata) == frame


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forgets_bad_frames(dut: object) -> None:
    """A frame that is bad at its end never leaves."""
    cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s"), dut.clk, dut.rst)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m"), dut.clk, dut.rst)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    for number in range(20):
        dut.is_bad.value = number % 2
        await source.send(AxiStreamFrame(bytes([number]) * 100))
        await source.wait()
        await ClockCycles(dut.clk, 2)
        if number % 2 == 0:
            assert bytes((await sink.recv()).tdata) == bytes([number]) * 100
    await ClockCycles(dut.clk, 50)
    assert sink.empty()
