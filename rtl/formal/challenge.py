# SPDX-License-Identifier: Apache-2.0
"""Shows that a proof can fail and is not vacuous: `challenge.py NAME` runs NAME.sby on each broken
copy of NAME.sv (broken.toml), and looks for the states that NAME_formal.sv names by `cover`. Of a
block without a proof it runs the bench. Called by `make -C rtl challenge-NAME`, in rtl/."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "target" / "rtl" / "formal"
COVER_DEPTH = {"hcf": 56}
"""Clocks within which all states that a proof covers are reached."""


def run(name: str, label: str, mode: str, depth: int, block: Path) -> str:
    """Runs the proof in another mode, with another block; returns how it ended, such as FAIL."""
    text = (HERE / f"{name}.sby").read_text(encoding="utf-8")
    for line, becomes in (
        ("mode .*", f"mode {mode}"),
        ("depth .*", f"depth {depth}"),
        ("dut.sv .*", f"dut.sv {block}"),
    ):
        text, count = re.subn(rf"^{line}$", becomes, text, flags=re.M)
        if count != 1:
            raise SystemExit(f"formal/{name}.sby: {count} lines are {line}; there has to be one")
    config = OUT / f"{label}.sby"
    config.write_text(text, encoding="utf-8")
    sby = Path(sys.executable).parent / "yowasp-sby"
    done = subprocess.run(
        [sby, "--prefix", OUT / label, "-f", config], capture_output=True, text=True, check=False
    )
    (OUT / f"{label}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    end = re.search(r"DONE \((\w+)", done.stdout)
    return end[1] if end else "ERROR"


def bench(name: str, label: str, block: Path) -> str:
    """Builds and runs the bench at 64 bits with another block; returns how it ended."""
    own = {"COPY": block, "BENCH": OUT / label, "CASES": 20}
    settings = [f"{key}={value}" for key, value in own.items()]
    environment = {key: value for key, value in os.environ.items() if key not in {"MAKEFLAGS", "MFLAGS"}}
    for target in (f"{OUT / label}/{name}-64", f"run-{name}-64"):
        command = ["make", "--no-print-directory", target, *settings]
        done = subprocess.run(
            command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
        )
        (OUT / f"{label}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        if done.returncode:
            return "FAIL" if target.startswith("run-") else "ERROR"
    return "PASS"


def main(name: str) -> int:
    """Runs all; returns the number of faults and states that were not found."""
    block = HERE.parent / f"{name}.sv"
    source = block.read_text(encoding="utf-8")
    faults = tomllib.loads((HERE / "broken.toml").read_text(encoding="utf-8"))[name]
    missed = 0
    for number, fault in enumerate(faults, 1):
        label = f"{name}-broken-{number}"
        if source.count(fault["old"]) != 1:
            raise SystemExit(f"{block.name}: not there exactly once: {fault['old']}")
        copy = OUT / f"{label}.sv"
        copy.write_text(source.replace(fault["old"], fault["new"]), encoding="utf-8")
        if "depth" in fault:
            end = run(name, label, "bmc", fault["depth"], copy)
        else:
            end = bench(name, label, copy)
        if end != "FAIL":
            missed += 1
            print(f"{name}: not found: {fault['fault']} ({end}, see {OUT}/{label}.log)")
    found = len(faults) - missed
    print(f"{name}: {found} of {len(faults)} faults found")
    if name in COVER_DEPTH:
        end = run(name, f"{name}-cover", "cover", COVER_DEPTH[name], block)
        missed += end != "PASS"
        print(f"{name}: the states that it covers: {end}")
    return missed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
