# SPDX-License-Identifier: Apache-2.0
"""The whole switch: frames from and to models of MACs and sinks that wait, registers by AXI4-Lite.

The C++ benches compare every bit with core/; these tests check the interfaces with other people's
models of them.
"""

import random
import re
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp, AxiStreamBus, AxiStreamSink
from cocotbext.eth import EthMacFrame, EthMacRx
from cocotbext.eth.eth_mac import AxiStreamTransaction
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

PORTS, WIDTH = 4, 64
STRIDE = 0x400
HEADER = (Path(__file__).parents[2] / "target/rtl/gen/params.h").read_text(encoding="utf-8")
REGISTERS = re.findall(r'\{"(\w+)",', HEADER)
BROKEN = {14: (0x00, 0x44, 0x65), 16: (0x01, 0xFF), 20: (0x20, 0x01), 21: (0x01,), 23: (0, 17, 255)}
"""By byte of a frame, values that make its IPv4 header no TCP's: version and length, total length,
fragment, protocol."""


class Bench:
    """The switch with a MAC's receiver and a sink on each port."""

    def __init__(self, dut: object) -> None:
        """Starts the clock of 156.25 MHz."""
        self.dut = dut
        cocotb.start_soon(Clock(dut.clk, 6.4, "ns").start())
        self.macs, self.sinks = [], []
        for i in range(PORTS):
            rx, tx = (AxiStreamBus.from_prefix(dut, f"{side}{i}") for side in ("in", "out"))
            self.macs.append(EthMacRx(rx, dut.clk, dut.rst, speed=10e9))
            self.sinks.append(AxiStreamSink(tx, dut.clk, dut.rst))
        bus = AxiLiteBus.from_prefix(dut, "s_axil")
        self.registers = AxiLiteMaster(bus, dut.clk, dut.rst)

    async def start(self) -> None:
        """Resets the switch; then each port's address is learnt."""
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 5)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 300)
        for i in range(PORTS):
            await self.macs[i].send(EthMacFrame(_frame(i, 0xFF, 60)))
        for i in range(PORTS):
            for _ in range(PORTS - 1):
                await self.sinks[i].recv()

    async def send_marked(self, port: int, frame: bytes) -> None:
        """Sends a frame as a MAC does that finds a wrong checksum at its end."""
        words = [frame[at : at + WIDTH // 8] for at in range(0, len(frame), WIDTH // 8)]
        for number, word in enumerate(words):
            cycle = AxiStreamTransaction()
            cycle.tdata, cycle.tkeep = int.from_bytes(word, "little"), (1 << len(word)) - 1
            cycle.tlast = cycle.tuser = int(number == len(words) - 1)
            await self.macs[port].stream.send(cycle)
        await self.macs[port].stream.wait()

    async def write(self, port: int, name: str, value: int) -> AxiResp:
        """Writes a register; returns the response."""
        data = value.to_bytes(4, "little")
        return (await self.registers.write(_address(port, name), data)).resp

    async def read(self, port: int, name: str) -> int:
        """Reads a register."""
        return int.from_bytes((await self.registers.read(_address(port, name), 4)).data, "little")


def _address(port: int, name: str) -> int:
    return port * STRIDE + 4 * REGISTERS.index(name)


def _frame(source: int, destination: int, size: int, flags: str = "A") -> bytes:
    first = 0xFF if destination == 0xFF else 0
    addresses = {"src": f"00:00:00:00:00:{source:02x}", "dst": f"{first:02x}:00:00:00:00:{destination:02x}"}
    packet = Ether(**addresses) / IP() / TCP(flags=flags, window=60000)
    return bytes(packet / random.randbytes(max(size - len(packet), 0))).ljust(60, b"\0")


async def _begin_flows(bench: Bench) -> None:
    """FairQ at port 0, and so many flows there that it lowers the window of each ACK."""
    assert await bench.write(0, "window_wscale_source", 4) == AxiResp.OKAY
    assert await bench.write(0, "port_scheme", 1) == AxiResp.OKAY
    await ClockCycles(bench.dut.clk, 1000)
    for _ in range(40):
        await bench.macs[0].send(EthMacFrame(_frame(0, 1, 60, "SA")))
        await bench.sinks[1].recv()
    await ClockCycles(bench.dut.clk, 2000)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def passes_frames(dut: object) -> None:
    """Every frame leaves by its port, unchanged and in order, while sinks wait."""
    bench = Bench(dut)
    await bench.start()
    for sink in bench.sinks:
        sink.set_pause_generator(random.random() < 0.3 for _ in iter(int, 1))
    expected: list[list[bytes]] = [[] for _ in range(PORTS)]
    for _ in range(30):
        for i in range(PORTS):
            frame = _frame(i, (i + 1) % PORTS, random.choice([60, 61, 64, 200, 1514]))
            expected[(i + 1) % PORTS].append(frame)
            await bench.macs[i].send(EthMacFrame(frame))
    for i in range(PORTS):
        for frame in expected[i]:
            assert bytes((await bench.sinks[i].recv()).tdata) == frame
    assert await bench.read(1, "counter_egress_packets") == 30 + PORTS - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def drops_bad_frames(dut: object) -> None:
    """Frames that the MAC marked, a truncated and an oversize one are lost; others pass."""
    bench = Bench(dut)
    await bench.start()
    good, longest = _frame(0, 2, 700), _frame(0, 2, 9018)
    for frame, passes in (
        (longest[:20], False),
        (longest + b"x", False),
        (longest, True),
        (good, True),
    ):
        await bench.send_marked(0, frame)
        await bench.macs[0].send(EthMacFrame(frame))
        if passes:
            assert bytes((await bench.sinks[2].recv()).tdata) == frame
        else:
            await ClockCycles(dut.clk, len(frame) // 8 + 100)
    await ClockCycles(dut.clk, 100)
    assert bench.sinks[2].empty()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def passes_malformed_packets(dut: object) -> None:
    """ACKs that are no TCP, or contradict themselves, pass unchanged where FairQ lowers intact ones."""
    bench = Bench(dut)
    await bench.start()
    await _begin_flows(bench)
    for _ in range(60):
        intact = _frame(0, 3, 90)
        await bench.macs[0].send(EthMacFrame(intact))
        assert Ether(bytes((await bench.sinks[3].recv()).tdata))[TCP].window < 60000
        frame = bytearray(intact)
        at = random.choice(list(BROKEN))
        frame[at] = random.choice(BROKEN[at])
        await bench.macs[0].send(EthMacFrame(frame))
        assert bytes((await bench.sinks[3].recv()).tdata) == bytes(frame)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lowers_windows(dut: object) -> None:
    """With FairQ the windows of ACKs fall as flows begin, and the TCP checksum stays right."""
    bench = Bench(dut)
    await bench.start()
    await _begin_flows(bench)
    await bench.macs[0].send(EthMacFrame(_frame(0, 1, 60)))
    packet = Ether(bytes((await bench.sinks[1].recv()).tdata))
    assert packet[TCP].window < 60000
    checksum = packet[TCP].chksum
    del packet[TCP].chksum
    assert Ether(bytes(packet))[TCP].chksum == checksum
    assert await bench.read(0, "counter_acks_rewritten") > 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_wrong_writes(dut: object) -> None:
    """A value out of range, a counter and no register at all answer SLVERR."""
    bench = Bench(dut)
    await bench.start()
    assert await bench.write(1, "port_scheme", 9) == AxiResp.SLVERR
    assert await bench.write(1, "counter_acks", 1) == AxiResp.SLVERR
    assert (await bench.registers.read(PORTS * STRIDE, 4)).resp == AxiResp.SLVERR
    assert await bench.write(1, "port_scheme", 2) == AxiResp.OKAY
    assert await bench.read(1, "port_scheme") == 2
