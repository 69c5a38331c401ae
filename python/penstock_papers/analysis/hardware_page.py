# SPDX-License-Identifier: Apache-2.0
"""Prints the page of the hardware's resources: `make rtl-page` writes it to `rtl/resources.md`."""

from penstock_papers.analysis import hardware

_KINDS = ("flip-flops", "LUTs", "BRAMs", "multipliers")
_PAPER = {"flip-flops": (8364, 9419), "LUTs": (14067, 15985), "BRAMs": (22, 22)}
_BLOCKS = ("fairq", "hscc", "hcf", "lower_window")

_HEAD = """# What the switch takes of an FPGA

<!-- Written by `make rtl-page`. -->

Counted by Yosys. `penstock reproduce fairq-tab2` synthesizes the switch and compares it with
Table II of the FairQ paper; [results](../papers/results.md) has the causes of the differences. A
memory block has 18 kb, an output's buffer 16 kB. Ports are synthesized apart from what is around
them.
"""


def page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_schemes(), "", *_blocks(), ""])


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


def _share(kind: str, count: int) -> str:
    return f"{count:,} ({count / hardware.BOARD[kind]:.0%})"


def _blocks() -> list[str]:
    rows = [
        "## The clock of each block",
        "",
        "Placed and routed alone, at 64 bits, on an ECP5-85 of speed grade 8 by nextpnr:",
        "what the paths between its registers allow.",
        "10 Gb/s need 156.25 MHz, 1 Gb/s 15.6 MHz.",
        "",
        "| block | LUTs | flip-flops | MHz |",
        "|---|---:|---:|---:|",
    ]
    for block in _BLOCKS:
        report = hardware.placed(block)
        rows.append(
            f"| `{block}` | {report.luts:,} | {report.flip_flops:,} | {report.clock_mhz:.0f} |"
        )
    return rows


if __name__ == "__main__":
    print(page(), end="")
