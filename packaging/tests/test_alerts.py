# SPDX-License-Identifier: Apache-2.0
"""The alerts of packaging/monitoring: what labels the two sides of an operator are compared by."""

import re
from pathlib import Path

import pytest
import yaml

FILE = Path(__file__).resolve().parents[1] / "monitoring" / "alerts.yml"
RULES = yaml.safe_load(FILE.read_text("utf-8"))["groups"][0]["rules"]
EXPRESSIONS = {rule["alert"]: rule["expr"] for rule in RULES}
LABELS = {"job", "instance", "interface", "scheme", "reason"}
"""Of metrics of ports; of the reason only `penstock_passed_packets_total`."""


def test_an_upgraded_agent_is_not_silent():
    """The label `version` of penstock_build_info differs before and after."""
    expression = EXPRESSIONS["PenstockAgentSilent"]
    assert re.findall(r"\bunless\b(.*?)penstock_", expression) == [" on (job, instance) "]


def test_a_port_whose_scheme_changed_is_one_port():
    """Its counters are there under both schemes for a while: many series match many."""
    sides = EXPRESSIONS["PenstockUnknownScale"].split(">")
    left, right = (re.findall(r"by \((.*?)\)", side) for side in sides)
    assert left == right == ["job, instance, interface"]


@pytest.mark.parametrize(("alert", "expression"), EXPRESSIONS.items())
def test_series_with_a_reason_are_compared_as_sums(alert, expression):
    is_compared = len(set(re.findall(r"penstock_\w+", expression))) > 1
    if is_compared and "reason" in expression:
        assert expression.count("sum by") == expression.count("rate("), alert


@pytest.mark.parametrize(("alert", "expression"), EXPRESSIONS.items())
def test_a_summary_names_labels_that_the_alert_has(alert, expression):
    rule = next(one for one in RULES if one["alert"] == alert)
    named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    grouped = re.search(r"by \((.*?)\)", expression)
    left = set(grouped[1].split(", ")) if grouped else LABELS
    assert named <= left
