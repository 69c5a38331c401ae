# SPDX-License-Identifier: Apache-2.0
"""All problems of a scenario at once, each with its line and a mark under the key."""

import json

from penstock.errors import Problem, ScenarioError

from .conftest import SMALL
from .test_cli import penstock

SOURCE = 'title = "x"\n[tcp]\n  min_rto = "ten", sack = 3\n'


def test_the_key_is_marked_in_its_line():
    problem = Problem(3, "f.toml:3: tcp.sack: is no truth", "tcp.sack", "is no truth")
    assert problem.excerpt(SOURCE) == (
        '3 |   min_rto = "ten", sack = 3\n  |                    ^^^^'
    )
    unknown = Problem(2, "f.toml:2: traffic: is missing", "traffic", "is missing")
    assert unknown.excerpt(SOURCE) == "2 | [tcp]\n  | ^^^^^"
    assert Problem(None, "--set a=b: no", "a", "no").excerpt(SOURCE) == ""
    assert Problem(9, "f.toml:9: no", "a", "no").excerpt(SOURCE) == ""


def test_an_error_without_problems_is_its_message():
    assert ScenarioError("f.toml: no such file").lines() == ["f.toml: no such file"]


def test_validate_lists_all_problems(tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text(SMALL.replace('"fairq"', '"fiarq"').replace("senders = 8", "senders = 0"))
    err = penstock("validate", file, code=2).stderr
    assert err.count("penstock: ") == 2
    assert '| schemes = ["drop-tail", "fiarq"]\n' in err
    assert "| ^^^^^^^\n" in err
    document = json.loads(penstock("validate", file, "--json", code=2).stdout)
    assert [one["key"] for one in document["problems"]] == ["schemes[1]", "fabric.senders"]
    assert document["scenario"] is None
    broken = SMALL.replace("senders = 8", 'senders = "8"\ncolour = 1')
    file.write_text(broken.replace("[tcp]", "[tcp]\nsack = 1"))
    err = penstock("validate", file, code=2).stderr
    for key in ("fabric.senders: is the text", "fabric.colour: unknown key", "tcp.sack: is the "):
        assert key in err
    assert err.count("^^^^") == 3
    file.write_text(SMALL)
    document = json.loads(penstock("validate", file, "--json").stdout)
    assert document["problems"] == []
    assert document["scenario"]["title"].startswith("Six mice")
