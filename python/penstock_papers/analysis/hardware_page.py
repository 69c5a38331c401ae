# SPDX-License-Identifier: Apache-2.0
"""Prints the page of the hardware's resources: `make rtl-page` writes it to `rtl/resources.md`."""

from penstock_papers.analysis import hardware

_KINDS = ("flip-flops", "LUTs", "BRAMs", "multipliers")
_PAPER = {"flip-flops": (8364, 9419), "LUTs": (14067, 15985), "BRAMs": (22, 22)}
_BLOCKS = (
    *("parser", "ingress", "mac_table", "output_port", "registers", "fairq", "hscc", "hcf"),
    *("hcf_key", "window_rewriter", "lower_window", "segment", "flow_counter", "port_events"),
)
_WIDTHS, _PORTS = (64, 128, 256, 512), (2, 4, 8)
_ADAPTERS = {"taxi_macs": "four MACs, 64 bits", "corundum_app": "512 bits"}

_HEAD = """# What the switch takes of an FPGA

<!-- Written by `make rtl-page`. -->

Counted by Yosys. `penstock reproduce fairq-tab2` synthesizes the switch and compares it with
Table II of the FairQ paper; [results](../papers/results.md) has the causes of the differences. A
memory block has 18 kb, an output's buffer 16 kB. Ports are synthesized apart from what is around
them.
"""


def page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_schemes(), "", *_sizes(), "", *_blocks(), "", *_adapters(), ""])


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
    sizes = [(hardware.PORTS, width) for width in _WIDTHS]
    sizes += [(ports, hardware.WIDTH) for ports in _PORTS if ports != hardware.PORTS]
    for ports, width in sizes:
        none = hardware.switch("none", width, ports)
        more = hardware.increase("fairq", width, ports)
        cells = [f"{none[kind]:,}" for kind in _KINDS[:3]]
        cells += [f"{more[kind]:+,}" for kind in _KINDS[:3]]
        rows.append(f"| {ports} | {width} | {' | '.join(cells)} |")
    return rows


def _adapters() -> list[str]:
    """The adapters without the switch in them."""
    rows = [
        "## The adapters",
        "",
        "For an UltraScale+, by Yosys, without the switch in them.",
        "",
        "| adapter | flip-flops | LUTs | BRAMs |",
        "|---|---:|---:|---:|",
    ]
    for name, size in _ADAPTERS.items():
        counts = hardware.adapter(name)
        cells = (f"{counts[kind]:,}" for kind in _KINDS[:3])
        rows.append(f"| `{name}`, {size} | {' | '.join(cells)} |")
    counts = hardware.adapter("netfpga_slot")
    cells = (f"{counts[kind]:,}" for kind in _KINDS[:3])
    rows.append(f"| `netfpga_slot`, two MACs, 64 bits, FairQ, whole | {' | '.join(cells)} |")
    return rows


def _share(kind: str, count: int) -> str:
    return f"{count:,} ({count / hardware.BOARD[kind]:.0%})"


def _blocks() -> list[str]:
    rows = [
        "## The clock of each block",
        "",
        "Placed and routed alone, at 64 bits, on an ECP5-85 of speed grade 8 by nextpnr:",
        "what the paths between its registers allow. 10 Gb/s need 156.25 MHz, 1 Gb/s 15.6 MHz.",
        "Placement is random: up to six seeds are tried, until one is fast enough.",
        "",
        "| block | LUTs | flip-flops | MHz | seeds |",
        "|---|---:|---:|---:|---:|",
    ]
    for block in _BLOCKS:
        report = hardware.placed(block)
        rows.append(
            f"| `{block}` | {report.luts:,} | {report.flip_flops:,} | {report.clock_mhz:.1f} "
            f"| {report.tried} |"
        )
    return rows


if __name__ == "__main__":
    hardware.folder("rtl-sizes")
    print(page(), end="")
