# SPDX-License-Identifier: Apache-2.0
"""Writes what the hardware takes of an FPGA into its pages: `make rtl-page`.

That is `resources.md`, and in the page of each platform the table between `<!-- cost -->` and
`<!-- end -->`.
"""

import re
import subprocess
from pathlib import Path

from place import GOAL_MHZ

from penstock_papers.analysis import hardware

RTL = Path(__file__).parent

_KINDS = ("flip-flops", "LUTs", "BRAMs", "multipliers")
_PAPER = {"flip-flops": (8364, 9419), "LUTs": (14067, 15985), "BRAMs": (22, 22)}
_COST = re.compile(r"(?<=<!-- cost -->\n)(.*?)(?=<!-- end -->)", re.S)

_HEAD = """# What the switch takes of an FPGA

<!-- Written by `make rtl-page`. -->

Counted by Yosys. `penstock reproduce fairq-tab2` synthesizes the switch and compares it with
Table II of the FairQ paper; [results](../papers/results.md) has the causes of the differences. A
memory block has 18 kb, an output's buffer 16 kB. Ports are synthesized apart from what is around
them.
"""


def listed(name: str) -> list[str]:
    """The words of a variable of the Makefile, which synthesizes these."""
    command = ["make", "--silent", "--no-print-directory", "-C", str(RTL), f"print-{name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_schemes(), "", *_sizes(), "", *_blocks(), ""])


def _schemes() -> list[str]:
    none = hardware.switch("none")
    rows = [
        "## By scheme, on the paper's FPGA",
        "",
        "Four ports of 64 bits on an XC2VP50 (Virtex-II Pro), whose LUTs have 4 inputs.",
        "In brackets: the share of the board.",
        "",
        f"| switch | {' | '.join(_KINDS)} |",
        "|---|" + "---:|" * len(_KINDS),
        f"| without a scheme | {' | '.join(_share(kind, none[kind]) for kind in _KINDS)} |",
    ]
    for scheme in ("fairq", "hscc", "hcf"):
        more = hardware.increase(scheme)
        cells = (f"{more[kind]:+,} ({more[kind] / hardware.BOARD[kind]:+.0%})" for kind in _KINDS)
        rows.append(f"| {scheme} | {' | '.join(cells)} |")
    paper = {kind: _PAPER.get(kind) for kind in _KINDS}
    before = (_share(kind, pair[0]) if pair else "" for kind, pair in paper.items())
    after = (
        f"{pair[1] - pair[0]:+,} ({(pair[1] - pair[0]) / hardware.BOARD[kind]:+.0%})"
        if pair
        else ""
        for kind, pair in paper.items()
    )
    rows.append(f"| the paper's reference switch | {' | '.join(before)} |")
    rows.append(f"| the paper's FairSwitch | {' | '.join(after)} |")
    return rows


def _sizes() -> list[str]:
    """The switch by width and by number of ports."""
    rows = [
        "## By width and number of ports",
        "",
        "As above: without a scheme, and what FairQ adds. A switch of n ports has n memories for",
        "each output, so that all inputs may write to it in the same clock.",
        "",
        "| ports | bits | flip-flops | LUTs | BRAMs | FairQ: flip-flops | LUTs | BRAMs |",
        "|---:|---:|" + "---:|" * 6,
    ]
    sizes = [(hardware.PORTS, width) for width in map(int, listed("WIDTHS"))]
    sizes += [(ports, hardware.WIDTH) for ports in map(int, listed("MORE_PORTS"))]
    for ports, width in sizes:
        none = hardware.switch("none", width, ports)
        more = hardware.increase("fairq", width, ports)
        cells = [f"{none[kind]:,}" for kind in _KINDS[:3]]
        cells += [f"{more[kind]:+,}" for kind in _KINDS[:3]]
        rows.append(f"| {ports} | {width} | {' | '.join(cells)} |")
    return rows


def cost(name: str, width: int, ports: int, *, has_switch: bool = True) -> str:
    """The table of an adapter, and of the switch in it with FairQ, in Markdown."""
    rows = {f"`{name}`": hardware.adapter(name)}
    if has_switch:
        rows["the switch in it"] = hardware.switch("fairq", width, ports, hardware.PLATFORMS)
    return "\n".join(
        [
            f"| {ports} ports of {width} bits | {' | '.join(_KINDS)} |",
            "|---|" + "---:|" * len(_KINDS),
            *(
                f"| {label} | {' | '.join(f'{counts[kind]:,}' for kind in _KINDS)} |"
                for label, counts in rows.items()
            ),
            "",
        ]
    )


def _share(kind: str, count: int) -> str:
    return f"{count:,} ({count / hardware.BOARD[kind]:.0%})"


def _blocks() -> list[str]:
    rows = [
        "## The clock of each block",
        "",
        "Placed and routed alone, at 64 bits, on an ECP5-85 of speed grade 8 by nextpnr:",
        "what the paths between its registers allow. "
        f"10 Gb/s need {GOAL_MHZ:g} MHz, 1 Gb/s {GOAL_MHZ / 10:.1f} MHz.",
        "Placement is random: up to six seeds are tried, until one is fast enough.",
        "",
        "| block | LUTs | flip-flops | MHz | seeds |",
        "|---|---:|---:|---:|---:|",
    ]
    for block in listed("PLACED"):
        report = hardware.placed(block)
        name, plain, _ = block.partition("-plain")
        rows.append(
            f"| `{name}`{plain and ' without HCF'} | {report.luts:,} | {report.flip_flops:,} "
            f"| {report.clock_mhz:.1f} | {report.tried} |"
        )
    return rows


def pages() -> dict[Path, str]:
    """All pages, with what has been synthesized."""
    written = {RTL / "resources.md": page()}
    for platform, table in (
        ("taxi", cost("taxi_macs", 64, 4)),
        ("corundum", cost("corundum_app", 512, 2)),
        ("netfpga", cost("netfpga_slot", 512, 2, has_switch=False)),
    ):
        path = RTL / f"{platform}.md"
        written[path] = _COST.sub(table, path.read_text(encoding="utf-8"))
    return written


def main() -> None:
    """Writes them, after the synthesis."""
    hardware.folder("rtl-sizes")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
