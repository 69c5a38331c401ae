# SPDX-License-Identifier: Apache-2.0
"""Prints the SBOM of a release, CycloneDX 1.6: sbom.py VERSION, in the environment of `make build`.

Each program, and the Python package, with all that it is made of: crates by `cargo metadata`,
without those of tests and of other systems; libraries in C and the standard library, which are
linked statically; Python packages by uv.lock, with licences from their metadata. The image of the
simulator has more, which `dpkg` and `pip list` name in it.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROGRAMS = {
    "penstockd": "penstockd",
    "penstock-traffic": "penstock-loadgen",
    "penstock-controller": "penstock-controller",
    "penstock-cni": "penstock-cni",
}
"""The crate of each."""
MODULE = "penstock-python"
"""The crate of the Python module."""
MACHINES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
LIBRARIES = {
    "libelf-dev": ("GPL-2.0-or-later OR LGPL-3.0-or-later", ("penstockd",)),
    "zlib1g-dev": ("Zlib", ("penstockd",)),
    "libc6-dev": ("LGPL-2.1-or-later", tuple(PROGRAMS)),
}
"""Debian's packages with static libraries: the licence, and the programs that have them."""
STANDARD_LIBRARY = "(MIT OR Apache-2.0) AND Unicode-3.0"
"""The licence of Rust's."""
VENDORED = Path("python/penstock/show/vendor/uPlot.js")
"""The charts of pages, whose first line has the version."""
LICENCES = {
    "contourpy": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "fonttools": "MIT",
    "jinja2": "BSD-3-Clause",
    "kiwisolver": "BSD-3-Clause",
    "markdown-it-py": "MIT",
    "matplotlib": "LicenseRef-Matplotlib",
    "mdurl": "MIT",
    "polars": "MIT",
    "polars-runtime-32": "MIT",
    "rich": "MIT",
    "shellingham": "ISC",
    "tomli-w": "MIT",
}
"""Of Python packages whose metadata have no expression of SPDX, only text or a classifier."""

Component = dict[str, Any]
Graph = dict[str, set[str]]


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def built_from(roots: set[str]) -> tuple[dict[str, Any], Graph]:
    """The packages of all crates that some are built from, and what each needs, by their ids."""
    packages: dict[str, Any] = {}
    needs: Graph = {}
    for machine in MACHINES:
        options = ("--locked", "--features", "penstockd/static", "--filter-platform", machine)
        metadata = json.loads(output("cargo", "metadata", "--format-version", "1", *options))
        packages |= {package["id"]: package for package in metadata["packages"]}
        for node in metadata["resolve"]["nodes"]:
            needs.setdefault(node["id"], set()).update(
                dependency["pkg"]
                for dependency in node["deps"]
                if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            )
    waiting, used = [one for one in needs if packages[one]["name"] in roots], set()
    while waiting:
        package = waiting.pop()
        if package not in used:
            used.add(package)
            waiting += needs[package]
    return {package: packages[package] for package in used}, needs


def crates(graph: Graph) -> list[Component]:
    """All crates that the programs and the module are built from; `graph` gets what each needs."""
    packages, needs = built_from({*PROGRAMS.values(), MODULE})
    sums = {
        (one["name"], one["version"]): one.get("checksum")
        for one in tomllib.loads(Path("Cargo.lock").read_text("utf-8"))["package"]
    }
    for package in packages:
        graph[purl("cargo", packages[package])] = {
            purl("cargo", packages[other]) for other in needs[package]
        }
    return [
        component("cargo", one, licence_of_crate(one), sums[one["name"], one["version"]])
        for one in packages.values()
    ]


def licence_of_crate(package: dict[str, Any]) -> str:
    """As an expression of SPDX; old manifests have a slash for OR."""
    return str(package["license"]).replace("/", " OR ")


def libraries(graph: Graph) -> list[Component]:
    """The libraries in C, and Rust's own, that are linked into programs."""
    found = []
    for name, (licence, programs) in LIBRARIES.items():
        version = output("dpkg-query", "--show", "--showformat", "${Version}", name)
        one = component("deb/debian", {"name": name, "version": version}, licence)
        found.append(one)
        graph[one["bom-ref"]] = set()
        for program in programs:
            graph[f"program:{program}"].add(one["bom-ref"])
    version = output("rustc", "--version").split()[1]
    standard = {"name": "rust-std", "version": version}
    one = component("generic", standard, STANDARD_LIBRARY)
    graph[one["bom-ref"]] = set()
    for program in (*PROGRAMS, "penstock"):
        graph[f"program:{program}"].add(one["bom-ref"])
    return [*found, one]


def packages(graph: Graph) -> list[Component]:
    """The Python packages that `pip install penstock` installs on Linux, as locked."""
    locked = tomllib.loads(Path("uv.lock").read_text("utf-8"))["package"]
    versions: dict[str, list[dict[str, Any]]] = {}
    for package in locked:
        versions.setdefault(package["name"], []).append(package)

    def needs(package: dict[str, Any]) -> set[str]:
        return {
            one["name"]
            for one in package.get("dependencies", ())
            if "win32" not in one.get("marker", "") or "!=" in one["marker"]
        }

    waiting, used = ["penstock"], set()
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += (other for package in versions[name] for other in needs(package))
    found = []
    for name in used - {"penstock"}:
        for package in versions[name]:
            digest = package.get("sdist", {}).get("hash", "").removeprefix("sha256:")
            found.append(component("pypi", package, licence_of(name), digest))
    for name in used:
        for package in versions[name]:
            key = "program:penstock" if name == "penstock" else purl("pypi", package)
            graph.setdefault(key, set()).update(
                purl("pypi", other) for one in needs(package) for other in versions[one]
            )
    return found


def vendored(graph: Graph) -> Component:
    """What the Python package has in its own files."""
    (version,) = re.findall(r"\(v([\d.]+)\)", VENDORED.read_text("utf-8").splitlines()[0])
    one = component("npm", {"name": "uplot", "version": version}, "MIT")
    graph[one["bom-ref"]] = set()
    graph["program:penstock"].add(one["bom-ref"])
    return one


def licence_of(name: str) -> str:
    """The licence of an installed Python package, as an expression of SPDX."""
    if name in LICENCES:
        return LICENCES[name]
    metadata = importlib.metadata.metadata(name)
    licence: str | None = metadata.get("License-Expression") or metadata.get("License")
    if not licence or "\n" in licence:
        message = f"packaging/release/sbom.py: no licence of {name}: add it to LICENCES"
        raise SystemExit(message)
    return licence


def purl(kind: str, package: dict[str, Any]) -> str:
    """The name of a package that other tools know."""
    return f"pkg:{kind}/{package['name']}@{package['version'].replace(':', '%3A')}"


def component(
    kind: str, package: dict[str, Any], licence: str, digest: str | None = None
) -> Component:
    """An entry of the list."""
    ref = purl(kind, package)
    entry = {"type": "library", "bom-ref": ref, "purl": ref}
    entry |= {"name": package["name"], "version": package["version"]}
    entry["licenses"] = [{"expression": licence}]
    if digest:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return entry


def program(name: str, version: str) -> Component:
    """An entry for a file of the release."""
    licence = "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"
    entry = {"type": "application", "bom-ref": f"program:{name}", "name": name, "version": version}
    return entry | {"licenses": [{"expression": licence}]}


def main(version: str) -> None:
    """Prints the document; the same for the same lock files, commit and tools."""
    graph: Graph = {f"program:{name}": set() for name in (*PROGRAMS, "penstock")}
    found = [*crates(graph), *libraries(graph), *packages(graph), vendored(graph)]
    for name, crate in (*PROGRAMS.items(), ("penstock", MODULE)):
        graph[f"program:{name}"].add(purl("cargo", {"name": crate, "version": version}))
    found += [program(name, version) for name in (*PROGRAMS, "penstock")]
    root = program("penstock", version) | {"bom-ref": "release"}
    graph["release"] = {f"program:{name}" for name in (*PROGRAMS, "penstock")}
    time = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": root,
        },
        "components": sorted(found, key=lambda one: one["bom-ref"]),
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(needs)} for ref, needs in sorted(graph.items())
        ],
    }
    text = json.dumps(document, sort_keys=True)
    serial = uuid.uuid5(uuid.NAMESPACE_OID, text)
    print(json.dumps(document | {"serialNumber": f"urn:uuid:{serial}"}, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1])
