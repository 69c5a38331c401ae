# SPDX-License-Identifier: Apache-2.0
"""Prints the notices of what is linked into the programs of a release: a list, then the texts.

Crates have their texts next to their sources, Debian's libraries in /usr/share/doc. A text that
many have is printed once. Python packages bring their own.
"""

import re
from pathlib import Path
from typing import Any

from sbom import LIBRARIES, PROGRAMS, STANDARD_LIBRARY, built_from, licence_of_crate, output

TEXT = re.compile(r"(UN)?LICEN[CS]E|COPYING|COPYRIGHT|NOTICE", re.I)
"""Begins the name of a file with a licence or a notice."""


def texts_of(package: dict[str, Any]) -> dict[str, str]:
    """The texts of a crate by their names; libbpf-sys has those of libbpf a folder deeper."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for depth in ("*", "*/*") for file in folder.glob(depth))
    return {
        file.relative_to(folder).as_posix(): file.read_text("utf-8", errors="replace")
        for file in files
        if TEXT.match(file.name) and file.suffix not in {".rs", ".in"} and file.is_file()
    }


def main() -> None:
    """Prints all; the same for the same lock file and system."""
    crates, _ = built_from(set(PROGRAMS.values()))
    lines, owners = [], dict[str, list[str]]()
    for package in sorted(crates.values(), key=lambda one: (one["name"], one["version"])):
        if package["source"] is None:
            continue  # ours
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {licence_of_crate(package)}; {package['repository'] or ''}")
        for file, text in texts_of(package).items():
            owners.setdefault(text.strip(), []).append(f"{name}, {file}")
    for library, (licence, programs) in LIBRARIES.items():
        version = output("dpkg-query", "--show", "--showformat", "${Version}", library)
        lines.append(f"{library} {version} of Debian, in {', '.join(programs)}: {licence}")
        text = Path("/usr/share/doc", library, "copyright").read_text("utf-8")
        owners.setdefault(text.strip(), []).append(f"{library} {version}")
    lines.append(f"standard library of {output('rustc', '--version')}: {STANDARD_LIBRARY}")
    print("What the programs of Penstock are linked with statically, and its licences.\n")
    print("\n".join(lines))
    for text, names in owners.items():
        print("", "=" * 80, *names, "-" * 80, text, sep="\n")


main()
