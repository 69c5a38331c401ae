# SPDX-License-Identifier: Apache-2.0
"""Writes the golden vectors next to this file: `python3 tests/vectors/generate.py`."""

import json
from pathlib import Path
from random import Random

from reference import fairq, flow, flow_counter, grant, hcf, hscc, segment, sicc, tcp_rewrite


def main() -> None:
    for module in (tcp_rewrite, segment, flow, flow_counter, fairq, hscc, sicc, hcf, grant):
        stem = module.__name__.rpartition(".")[2]
        lines = (json.dumps(row, separators=(",", ":")) for row in module.vectors(Random(stem)))
        Path(__file__).with_name(f"{stem}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
