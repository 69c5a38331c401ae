# SPDX-License-Identifier: Apache-2.0
"""Prints the SBOM of a release, CycloneDX 1.6, from the lock files: sbom.py VERSION.

The crates that the programs and the Python module are built from, by `cargo metadata` with their
licences, and the Python packages that a wheel requires, by uv.lock.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any


def crates() -> list[dict[str, Any]]:
    """All crates that are linked into something, without those of tests."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    metadata = json.loads(text)
    nodes = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    waiting, used = list(metadata["workspace_members"]), set()
    while waiting:
        package = waiting.pop()
        if package not in used:
            used.add(package)
            waiting += [
                dependency["pkg"]
                for dependency in nodes[package]
                if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            ]
    sums = {
        (one["name"], one["version"]): one.get("checksum")
        for one in tomllib.loads(Path("Cargo.lock").read_text("utf-8"))["package"]
    }
    found = []
    for package in metadata["packages"]:
        if package["id"] in used and package["source"]:
            digest = sums[package["name"], package["version"]]
            found.append(component("cargo", package, package["license"], digest))
    return found


def packages() -> list[dict[str, Any]]:
    """The Python packages that `pip install penstock` brings along, as locked."""
    locked = tomllib.loads(Path("uv.lock").read_text("utf-8"))["package"]
    by_name = {one["name"]: one for one in locked}
    waiting, used = ["penstock"], set()
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += [one["name"] for one in by_name[name].get("dependencies", [])]
    used.discard("penstock")
    return [component("pypi", by_name[name], None, None) for name in used]


def component(
    kind: str, package: dict[str, Any], licence: str | None, digest: str | None
) -> dict[str, Any]:
    """An entry of the list."""
    name, version = package["name"], package["version"]
    purl = f"pkg:{kind}/{name}@{version}"
    entry: dict[str, Any] = {"type": "library", "bom-ref": purl, "purl": purl}
    entry |= {"name": name, "version": version}
    if licence:
        entry["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if digest:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return entry


def main() -> None:
    """Prints the document; the same for the same lock files."""
    components = sorted(crates() + packages(), key=lambda one: one["bom-ref"])
    root = {"type": "application", "name": "penstock", "version": sys.argv[1]}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
    }
    print(json.dumps(document, indent=1, sort_keys=True))


main()
