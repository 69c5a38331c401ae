# SPDX-License-Identifier: Apache-2.0
"""What the switch of `rtl/` takes of an FPGA, by synthesis (FairQ Table II).

`make rtl-resources` synthesizes what is not synthesized yet: the switch without a scheme, and with
each; `make rtl-page` blocks alone, other widths, numbers of ports and the adapters, too. A
configuration is named FAMILY-SCHEMES-WIDTH-PORTS: a family of Xilinx's, a number with a bit for
each scheme, bit 0 for none, the bits of a word, and the number of ports.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.errors import RunError

ROOT = Path(__file__).parents[3]
SCHEMES = {"none": 1, "fairq": 3, "hscc": 5, "hcf": 9}
WIDTH, PORTS = 64, 4
PAPER, PLATFORMS = "xc2vp", "xcup"
"""The family of the paper's board, and that of the platforms that have adapters."""
BOARD = {"flip-flops": 47232, "LUTs": 47232, "BRAMs": 232, "multipliers": 232}
"""What the paper's board has, an XC2VP50: Table II prints 47323 flip-flops, which is a misprint."""

Counts = dict[str, int]


@dataclass(frozen=True)
class Placed:
    """What a block takes, and its clock."""

    luts: int
    flip_flops: int
    clock_mhz: float
    tried: int


_CELLS = {
    "flip-flops": {"FD": 1},
    "LUTs": {
        **{"LUT": 1, "SRL": 1, "RAM16X1": 2, "RAM32X1": 4},
        # RAM64M8 and RAM32M16 have four more than RAM64M and RAM32M.
        **{"RAM64M": 4, "RAM32M": 4, "RAM64M8": 4, "RAM32M16": 4},
    },
    "BRAMs": {"RAMB16_": 1, "RAMB18": 1, "RAMB36": 2},
    "multipliers": {"MULT18X18": 1, "DSP48": 1},
}
"""Cells by the beginning of their names. A block memory is one of 18 kb."""


def counted(cells: Mapping[str, int]) -> Counts:
    """The resources that a synthesized module takes, by the names of `BOARD`."""
    return {
        name: sum(
            weight * number
            for begin, weight in kinds.items()
            for cell, number in cells.items()
            if cell.startswith(begin)
        )
        for name, kinds in _CELLS.items()
    }


@cache
def folder(target: str = "rtl-resources", sizes: str = "") -> Path:
    """Where the results of the synthesis are; runs it if necessary (some minutes).

    Args:
        target: of the Makefile.
        sizes: the configurations to synthesize; default: those of the target.

    Raises:
        RunError: it fails, or this is no clone of the repository.
    """
    if not (ROOT / "rtl").is_dir():
        message = "rtl/ is only in a clone of the repository: run this there"
        raise RunError(message)
    chosen = [f"SIZES={sizes}"] if sizes else []
    if sizes and not _is_done(chosen):
        text = f"Synthesizing {sizes}, a switch of rtl/: some minutes of one core"
        sys.stderr.write(f"{text}\n")
    command = ["make", "--silent", target, *chosen]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"make {target}: {(done.stderr or done.stdout).strip()[-500:]}"
        raise RunError(message)
    return ROOT / "target" / "rtl" / "synth"


def _is_done(sizes: list[str]) -> bool:
    """Whether the results of these sizes are there, and not older than the sources."""
    command = ["make", "--question", "-C", "rtl", "resources", *sizes]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def switch(scheme: str, width: int = WIDTH, ports: int = PORTS, family: str = PAPER) -> Counts:
    """The resources of a switch with one scheme: its ports, and what is around them."""
    size = f"{family}-{SCHEMES[scheme]}-{width}-{ports}"
    where = folder(sizes=size)
    port, rest = (counted(_read(where, f"{size}-{part}")) for part in ("port", "rest"))
    return {key: ports * port[key] + rest[key] for key in port}


def increase(scheme: str, width: int = WIDTH, ports: int = PORTS) -> Counts:
    """What a scheme adds to the switch without one."""
    with_scheme, without = (switch(one, width, ports) for one in (scheme, "none"))
    return {key: with_scheme[key] - without[key] for key in without}


def adapter(name: str) -> Counts:
    """What an adapter takes of an FPGA of `PLATFORMS`, without the switch in it."""
    return counted(_read(folder(), f"{name}-adapter"))


def placed(block: str) -> Placed:
    """A block of 64 bits alone, placed and routed on an ECP5 of speed grade 8."""
    report = json.loads((folder() / f"{block}-ecp5.json").read_text(encoding="utf-8"))
    used = report["utilization"]
    return Placed(
        used["TRELLIS_COMB"]["used"],
        used["TRELLIS_FF"]["used"],
        next(iter(report["fmax"].values()))["achieved"],
        report["tried"],
    )


def _read(where: Path, name: str) -> Mapping[str, int]:
    document = json.loads((where / f"{name}.json").read_text(encoding="utf-8"))
    cells: Mapping[str, int] = document["design"]["num_cells_by_type"]
    return cells


def reference_flip_flops(_runs: Mapping[str, object]) -> float:
    """Flip-flops of the switch without a scheme."""
    return switch("none")["flip-flops"]


def reference_luts(_runs: Mapping[str, object]) -> float:
    """LUTs of the switch without a scheme."""
    return switch("none")["LUTs"]


def fairq_flip_flops(_runs: Mapping[str, object]) -> float:
    """Flip-flops that FairQ adds."""
    return increase("fairq")["flip-flops"]


def fairq_luts(_runs: Mapping[str, object]) -> float:
    """LUTs that FairQ adds."""
    return increase("fairq")["LUTs"]


def fairq_brams(_runs: Mapping[str, object]) -> float:
    """Memory blocks that FairQ adds."""
    return increase("fairq")["BRAMs"]
