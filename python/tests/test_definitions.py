# SPDX-License-Identifier: Apache-2.0
"""What `core/` defines is what every consumer has: schema, scenarios, metrics, documents."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock import _native, metrics
from penstock.fleet import readings

ROOT = Path(__file__).resolve().parents[2]
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "docs")
    import refresh

DEFINITIONS = json.loads(_native.definitions())
SCHEMES = {scheme["name"]: scheme for scheme in DEFINITIONS["schemes"]}
COMMON = SCHEMES["window"]["params"]
SCHEMA = json.loads(_native.schema())["$defs"]

SCENARIO = {
    "title": "defaults",
    "duration": "1 ms",
    "schemes": ["own"],
    "fabric": {
        "kind": "dumbbell",
        "senders": 1,
        "receivers": 1,
        "access": {"rate": "1 Gb/s", "delay": "1 us"},
        "bottleneck": {"rate": "1 Gb/s", "delay": "1 us"},
    },
    "traffic": {"some": {"kind": "bulk", "from": "all", "to": "all", "pairs": "random"}},
}

PART = {"sicc": "controller", "hcf": "queue"}
"""Where a scheme stands that is no window scheme."""


def part_of(name):
    return PART.get(name, "window")


def params_of(name):
    return SCHEMES[name]["params"] + (COMMON if part_of(name) == "window" else [])


def table_of(name, part):
    """The properties of a scheme's table in the JSON Schema."""
    kinds = SCHEMA[part.capitalize()]["anyOf"]
    return next(kind["properties"] for kind in kinds if kind["properties"]["kind"]["const"] == name)


def stated(param, column):
    """A preset as a scenario writes it; None if it is left to the network or to nothing."""
    text = param[f"{column}_text"]
    if "RTT" in text or text == "none":
        return None
    if param["unit"] in ("time", "rate", "one of", "packets or bytes"):
        return text
    return bool(param[column]) if param["unit"] == "true or false" else param[column]


@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "window"])
def test_the_schema_describes_each_parameter(name):
    properties = table_of(name, part_of(name))
    assert set(properties) == {"kind", "variant", *(param["key"] for param in params_of(name))}
    for param in params_of(name):
        description = properties[param["key"]]["description"]
        assert description.startswith(f"{param['meaning']}. Default: {param['default_text']}")
        if param["default"] != param["paper"]:
            assert description.endswith(f"; paper: {param['paper_text']}.")


@pytest.mark.parametrize("column", ["default", "paper"])
@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "window"])
def test_a_scenario_has_the_defaults_of_its_variant(name, column):
    part = {"kind": name, "variant": column}
    resolved = penstock.validate(SCENARIO | {"scheme": {"own": {part_of(name): part}}})
    table = resolved["scheme"]["own"][part_of(name)]
    values = {param["key"]: stated(param, column) for param in params_of(name)}
    given = {key: value for key, value in values.items() if value is not None}
    assert table == part | given


@pytest.mark.parametrize(
    ("name", "variant"),
    [(name, variant) for name, scheme in SCHEMES.items() for variant in scheme["variants"]],
)
def test_a_variant_is_the_paper_but_for_what_it_changes(name, variant):
    place = SCHEMES[name]["variants"].index(variant)
    part = {"kind": name, "variant": variant}
    table = penstock.validate(SCENARIO | {"scheme": {"own": {part_of(name): part}}})
    table = table["scheme"]["own"][part_of(name)]
    of_paper = penstock.validate(
        SCENARIO | {"scheme": {"own": {part_of(name): part | {"variant": "paper"}}}}
    )["scheme"]["own"][part_of(name)]
    changed = {key for key in table if table[key] != of_paper[key]} - {"variant"}
    differing = {
        param["key"]
        for param in SCHEMES[name]["params"]
        if param["variant_texts"][place] != param["paper_text"]
    }
    assert changed == differing
    assert changed


@pytest.mark.parametrize("name", list(SCHEMES))
def test_the_documents_have_each_parameter(name):
    pages = "\n".join(page.read_text() for page in sorted((ROOT / "docs/schemes").glob("*.md")))
    table = re.search(rf"<!-- parameters: {name} -->\n(.*?)<!-- end -->", pages, re.S)
    assert table, f"no page of docs/schemes has the parameters of {name}; see docs/refresh.py"
    assert table[1] == refresh.parameters(name)


def test_ports_are_counted_by_the_names_of_the_datapath():
    counters = {counter["name"] for counter in DEFINITIONS["counters"]}
    assert set(metrics.PORT_COUNTERS) <= counters & set(metrics.PORTS)
    assert {"egress_packets", "egress_bytes"} <= counters & set(metrics.PORTS)
    of_the_qdisc = {"qdisc_drops"}
    assert set(readings.COUNTERS) - of_the_qdisc <= counters


def test_the_limit_of_late_flows_is_that_of_the_simulator_and_in_one_page():
    source = (ROOT / "crates/sim/src/run/outcome.rs").read_text()
    (limit_ms,) = re.findall(r"const LATE: Time = Time::from_millis\((\d+)\)", source)
    assert round(1000 * metrics.LATE_S) == int(limit_ms)
    pages = {page.name for page in (ROOT / "docs").rglob("*.md") if "190 ms" in page.read_text()}
    of_the_agent = {"observing.md"}  # the silence before a packet is sent again
    assert pages == {"glossary.md"} | of_the_agent


def test_golden_vectors_are_those_of_their_models():
    command = [sys.executable, ROOT / "tests/vectors/generate.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stderr
