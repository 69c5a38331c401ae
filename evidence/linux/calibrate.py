# SPDX-License-Identifier: Apache-2.0
"""Holds the simulator's TCP profile `linux` against the kernel of this machine.

Every scenario of evidence/linux runs in the laboratory and in the simulator, with the
repeats that it asks for. A scenario agrees where mean and median of the completion times (for
endless flows, the goodput) are within 15 % of the kernel's and the timeouts within 25 %. Prints the
table of README.md; the exit code is 1 where fewer than six agree, 2 where one fails.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.compare import Line, compare
from penstock.errors import RunError, ScenarioError

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "evidence/linux"
NEEDED = 6
"""Scenarios that must agree."""
FEW = 5.0
"""Timeouts in a run that may be missing or in excess: so few come and go by chance."""
TIMES = ("FCT mean", "FCT p50")
COLUMNS = ("FCT mean", "FCT p50", "RTOs", "SYN timeouts", "drops", "goodput")


@dataclass(frozen=True)
class Row:
    """One group of one scenario under one scheme: the kernel's numbers and the simulator's."""

    scenario: str
    group: str
    lines: dict[str, Line]

    @property
    def agrees(self) -> bool:
        """Whether what must agree does."""
        times = [self.lines[name] for name in TIMES if self.lines[name].first is not None]
        judged = times or [self.lines["goodput"]]
        return all(line.agrees for line in judged) and self._timeouts_agree()

    def _timeouts_agree(self) -> bool:
        line = self.lines["RTOs"]
        difference = abs((line.second or 0.0) - (line.first or 0.0))
        return bool(line.agrees) or difference <= FEW

    def cells(self) -> list[str]:
        """The row as people read it."""
        cells = [self.scenario, self.group]
        for name in COLUMNS:
            line = self.lines.get(name)
            if line is None or line.first is None or line.second is None:
                cells.append("")
                continue
            first, second, ratio, _ = line.shown()
            cells.append(f"{first} / {second}" + (f" ({ratio})" if line.ratio else ""))
        return [*cells, "yes" if self.agrees else "no"]


def main() -> int:
    """Runs the scenarios asked for, all by default."""
    parser = argparse.ArgumentParser(
        description="Hold the simulator's Linux TCP against this kernel's (needs root).",
        epilog="Example: evidence/linux/calibrate.py clients-32 large --keep /tmp/runs",
    )
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="default: all")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the runs, reuse those there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    known = sorted(path.stem for path in SCENARIOS.glob("*.toml"))
    for name in set(arguments.names) - set(known):
        print(f"calibrate: no scenario {name!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    names = arguments.names or known
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = arguments.keep or Path(temporary)
            rows = [row for name in names for row in hold(name, folder)]
    except (RunError, ScenarioError) as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 2
    failing = {row.scenario for row in rows if not row.agrees}
    agree = len(set(names) - failing)
    if arguments.json:
        print(json.dumps({"agree": agree, "of": len(names), "rows": [as_json(r) for r in rows]}))
    else:
        show(rows)
        print(f"\n{agree} of {len(names)} scenarios agree (Linux {platform.release()}).")
    return 0 if agree >= min(NEEDED, len(names)) else 1


def hold(name: str, folder: Path) -> list[Row]:
    """Runs a scenario on both substrates, and compares."""
    lab, sim = folder / name / "lab", folder / name / "sim"
    play(name, lab, "--on", "lab")
    play(name, sim)
    groups: dict[str, dict[str, Line]] = {}
    for line in compare(lab, sim).lines:
        groups.setdefault(line.group, {})[line.measure] = line
    port = {measure: line for one in groups.values() if "FCT mean" not in one
            for measure, line in one.items()}  # fmt: skip
    return [
        Row(name, group, {**port, **lines}) for group, lines in groups.items() if "RTOs" in lines
    ]


def play(name: str, folder: Path, *options: str) -> None:
    """One run by the command line; one that is there already is taken."""
    if (folder / "run.json").is_file():
        return
    print(f"{name} {' '.join(options)}", file=sys.stderr, flush=True)
    penstock = Path(sys.executable).parent / "penstock"
    command = [str(penstock), "run", str(SCENARIOS / f"{name}.toml"), "--out", str(folder)]
    # Before all else on the machine: what waits for a processor is not TCP.
    first = ["chrt", "--rr", "10"] if options and shutil.which("chrt") else []
    done = subprocess.run([*first, *command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        message = f"{name}: {lines[-1].removeprefix('penstock: ')}"
        raise RunError(message)


def show(rows: Iterable[Row]) -> None:
    """A table in Markdown: kernel / simulator (ratio)."""
    head = ["scenario", "group", *COLUMNS, "agrees"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row.cells())} |")


def as_json(row: Row) -> dict[str, object]:
    """The row for programs."""
    lines = {
        name: {"kernel": line.first, "simulator": line.second, "ratio": line.ratio}
        for name, line in row.lines.items()
    }
    return {"scenario": row.scenario, "group": row.group, "agrees": row.agrees, **lines}


if __name__ == "__main__":
    sys.exit(main())
