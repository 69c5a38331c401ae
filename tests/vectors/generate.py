# SPDX-License-Identifier: Apache-2.0
"""Writes the golden vectors next to this file: `python3 tests/vectors/generate.py`.

With `--check` it writes nothing, and lists the files that differ from their models.
"""

import argparse
import json
import sys
from pathlib import Path
from random import Random

from reference import fairq, flow, flow_counter, grant, hcf, hscc, segment, sicc, tcp_rewrite

MODELS = (tcp_rewrite, segment, flow, flow_counter, fairq, hscc, sicc, hcf, grant)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead")
    is_check = parser.parse_args().check
    differing = []
    for module in MODELS:
        stem = module.__name__.rpartition(".")[2]
        lines = (json.dumps(row, separators=(",", ":")) for row in module.vectors(Random(stem)))
        text = "\n".join(lines) + "\n"
        path = Path(__file__).with_name(f"{stem}.jsonl")
        if not is_check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differing.append(path.name)
    if differing:
        print(
            f"tests/vectors: {', '.join(differing)}: not what the models give; "
            "run python3 tests/vectors/generate.py",
            file=sys.stderr,
        )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
