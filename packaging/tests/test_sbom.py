# SPDX-License-Identifier: Apache-2.0
"""The SBOM: all that is linked or installed, with licences that tools understand."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

ROOT = Path(__file__).resolve().parents[2]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]
VERSION = WORKSPACE["package"]["version"]
PROGRAMS = {"penstockd", "penstock-traffic", "penstock-controller", "penstock-cni", "penstock"}


def sbom():
    command = [sys.executable, "packaging/release/sbom.py", VERSION]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def document():
    return json.loads(sbom())


def reached(document, program):
    """The names of all components of a program."""
    needs = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    names = {one["bom-ref"]: one["name"] for one in document["components"]}
    waiting, found = [f"program:{program}"], set()
    while waiting:
        ref = waiting.pop()
        if ref not in found:
            found.add(ref)
            waiting += needs[ref]
    return {names[ref] for ref in found}


def test_references_lead_somewhere_and_are_unique(document):
    refs = [one["bom-ref"] for one in document["components"]] + ["release"]
    assert len(set(refs)) == len(refs)
    assert {one["ref"] for one in document["dependencies"]} <= set(refs)
    for one in document["dependencies"]:
        assert set(one["dependsOn"]) <= set(refs)


def test_every_component_has_a_licence_and_what_is_fetched_a_digest(document):
    for one in document["components"]:
        (licence,) = one["licenses"]
        canonicalize_license_expression(licence["expression"])
        is_own = one["name"].startswith(("penstock", "rust-std"))
        if one.get("purl", "").startswith(("pkg:cargo", "pkg:pypi")) and not is_own:
            assert one.get("hashes"), one["name"]


def test_programs_have_what_is_linked_into_them(document):
    assert {
        one["name"] for one in document["components"] if one["type"] == "application"
    } == PROGRAMS
    agent = reached(document, "penstockd")
    assert {"libbpf-sys", "libelf-dev", "zlib1g-dev", "libc6-dev", "rust-std", "clap"} <= agent
    assert "libelf-dev" not in reached(document, "penstock-cni")
    assert not {"proptest", "windows-sys"} & agent
    everything = set().union(*(reached(document, program) for program in PROGRAMS))
    assert everything == {one["name"] for one in document["components"]}


def test_the_python_package_has_all_that_pip_installs(document):
    names = reached(document, "penstock")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for requirement in project["dependencies"]:
        assert requirement.split(">")[0] in names
    assert {"polars-runtime-32", "contourpy", "pyo3", "uplot"} <= names


def test_notices_have_every_component_of_a_program(document):
    command = [sys.executable, "packaging/release/notices.py"]
    notices = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for program in PROGRAMS - {"penstock"}:
        for name in reached(document, program):
            is_own = name.startswith("penstock")
            assert is_own or name == "rust-std" or f"\n{name} " in notices, name
    assert "\nlibbpf-sys 1" in notices
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in notices


def test_the_same_sources_have_the_same_document(document):
    assert json.loads(sbom()) == document
    assert document["serialNumber"].startswith("urn:uuid:")
