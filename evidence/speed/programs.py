# SPDX-License-Identifier: Apache-2.0
"""The programs that the benchmark times: Penstock without Python, ns-2, ns-3."""

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOPS = ROOT / "target/release/examples/hops"
NS3_PYTHON = ROOT / "target/ns3/bin/python"

# Simulated seconds of ns-3: a few seconds of wall time. Other scenarios have no peers.
NS3_DURATION_S = {"dumbbell": 0.5, "leaf-spine": 0.02}


@dataclass(frozen=True)
class Program:
    """A program under test: its command, or what to do to have one."""

    name: str
    command: list[str] | None
    remedy: str = ""
    note: str = ""


@dataclass(frozen=True)
class Sample:
    """One run of a program."""

    packet_hops: int
    loop_s: float
    process_s: float
    peak_rss_bytes: int

    @property
    def speed(self) -> float:
        """Packet-hops per second of the event loop."""
        return self.packet_hops / self.loop_s


def penstock(scenario: str, *settings: str, name: str = "penstock", threads: int = 1) -> Program:
    """Penstock's simulator, with `KEY=VALUE` set."""
    command = [str(HOPS), f"evidence/speed/{scenario}.toml", "--json", "--threads", str(threads)]
    for setting in settings:
        command += ["--set", setting]
    remedy = "cargo build --release -p penstock-sim --example hops"
    return Program(name, command if HOPS.exists() else None, remedy)


def peers(scenario: str, ns3_python: Path) -> list[Program]:
    """The other simulators that know the scenario."""
    if scenario not in NS3_DURATION_S:
        return []
    script, duration = scenario.replace("-", ""), NS3_DURATION_S[scenario]
    ns2 = ["ns", f"evidence/speed/ns2_{script}.tcl"]
    ns3 = [str(ns3_python), f"evidence/speed/ns3_{script}.py", str(duration)]
    return [
        Program("ns-2", ns2 if shutil.which("ns") else None, "apt-get install ns2"),
        Program(
            "ns-3",
            ns3 if _has_ns3(ns3_python) else None,
            "python3 -m venv target/ns3 && target/ns3/bin/pip install ns3==3.44.post0",
            f"{duration:g} s simulated",
        ),
    ]


def _has_ns3(python: Path) -> bool:
    """Whether the interpreter has ns-3's bindings, without loading them."""
    if python == Path(sys.executable):
        return importlib.util.find_spec("ns") is not None
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ns') is None)"
    return python.exists() and subprocess.run([python, "-c", probe], check=False).returncode == 0


def timed(command: list[str]) -> tuple[str, float]:
    """What a command prints, and the seconds it takes from start to end."""
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} failed: {done.returncode}")
    return done.stdout, time.perf_counter() - started


def run(program: Program) -> Sample:
    """Runs a simulator once; its report is the last line of its output."""
    assert program.command is not None
    output, process_s = timed(program.command)
    report: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return Sample(
        packet_hops=int(report["packet_hops"]),
        loop_s=float(report.get("loop_s", report["wall_s"])),  # of the peers it is the wall time
        process_s=process_s,
        peak_rss_bytes=int(report["peak_rss_bytes"]),
    )
