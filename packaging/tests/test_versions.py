# SPDX-License-Identifier: Apache-2.0
"""The version, which Cargo.toml has: other files repeat it, as their readers or formats need it."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]
VERSION = WORKSPACE["package"]["version"]

# Names of files, images and folders of a release: penstockd_0.2.0_amd64.deb, target/dist/0.2.0.
NAMED = re.compile(r"(?:penstock[a-z-]*[-_:]|target/dist/)(\d+\.\d+\.\d+)")


@pytest.mark.parametrize(("page", "least"), [("install.md", 10), ("kubernetes.md", 3)])
def test_documents_name_files_of_this_version(page, least):
    found = NAMED.findall((ROOT / "docs" / page).read_text("utf-8"))
    assert len(found) >= least
    assert set(found) == {VERSION}


def test_the_citation_is_of_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == VERSION


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((ROOT / "packaging" / "chart" / "Chart.yaml").read_text("utf-8"))
    assert chart["version"] == chart["appVersion"] == VERSION
