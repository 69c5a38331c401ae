# SPDX-License-Identifier: Apache-2.0
"""Random command lines, scenarios and folders: any of them ends in a result or in one line.

The cases are the same in each run; PENSTOCK_FUZZ_CASES makes more of them (`make fuzz-python`).
"""

import io
import os
import random
import re
import shutil
import sys

import pytest
import typer

from penstock import cli
from penstock.errors import PenstockError

from .conftest import SMALL, make_run

CASES = int(os.environ.get("PENSTOCK_FUZZ_CASES", "150"))

VALUES = [
    "", " ", "0", "-1", "1", "1e400", "nan", "9" * 30, "1,2,3", "..", "5..1", "1..3", "-5..7",
    "10 ms", "10 parsec", "-1 s", "0 s", "150 %", "[", "[]", "[1, \"a\"]", "{}", "{ a = 1 }",
    "\"", "\\", "\x1b[31m", "µs", "\u202e", "𝕏" * 50, "x" * 5000, "/", "/proc/x", "/dev/null",
    "true", "a..b", "../..", "nowhere", "small.toml", "demo", "fairq", "=", "a=b", "=1", "a=",
    "tcp.min_rto=", "--",
    "tcp.min_rto=1 ms", "fabric..senders=3", "traffic.mice.flows=99999999999", "seeds=[1,1]",
    "scheme.fairq.window.alpha=0.1..0.5", "mice.fct.p99", "mice.fct.p99<=1ms", "elephants.goodput",
]  # fmt: skip

UNTRIED = {
    "controller": "another program takes the place of this one",
    "fleet": "asks hosts for metrics, and waits as long as --for",
    "lab": "changes the network of this machine",
    "open": "writes a page into any folder that has results below it, such as /",
    "validate --json": "prints errors as JSON, on stdout",
}
EVERY_COMMAND = {
    name: [option for param in command.params for option in param.opts if option.startswith("--")]
    for name, command in typer.main.get_command(cli.app).commands.items()
}
COMMANDS = {
    name: ["--help", *(option for option in options if f"{name} {option}" not in UNTRIED)]
    for name, options in EVERY_COMMAND.items()
    if name not in UNTRIED
}
"""The options of each command, such as --set."""


class NotComputedError(PenstockError):
    """Instead of every simulation: what is fuzzed is all before it."""


@pytest.fixture
def outcome(tmp_path, monkeypatch, capsys):
    """Calls `penstock ARGUMENT...` here; returns code and what is on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # for `init`, which asks
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")

    def no_simulation(*_):
        message = "not computed"
        raise NotComputedError(message)

    for module in ("penstock.execution.threads", "penstock.execution.laboratory"):
        monkeypatch.setattr(f"{module}.run", no_simulation)
    monkeypatch.setattr("penstock.execution.dask_cluster.run", no_simulation)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
        return code, capsys.readouterr().err

    return call


def is_handled(code, err):
    """Whether an error is one line, or one for each problem with an excerpt of the scenario."""
    if code == 0:
        return err.count("\n") < 2
    lines = [line for line in err.splitlines() if not re.match(r" *\d* ?\| ", line)]
    return code in (1, 2) and lines and all(line.startswith("penstock: ") for line in lines)


@pytest.mark.parametrize("part", range(4))
def test_any_command_line_is_a_result_or_one_line(part, outcome):
    generator = random.Random(f"command lines {part}")
    for _ in range(CASES // 4):
        command = generator.choice(list(COMMANDS))
        arguments = [command]
        if generator.random() < 0.9:
            arguments.append(generator.choice([*VALUES, *["small.toml"] * 40]))
        for _ in range(generator.randrange(4)):
            arguments.append(generator.choice(COMMANDS[command]))
            if generator.random() < 0.9:
                arguments.append(generator.choice(VALUES))
        code, err = outcome(*arguments)
        assert is_handled(code, err), arguments


def test_only_what_exists_is_left_out():
    for left_out in UNTRIED:
        command, _, option = left_out.partition(" ")
        assert option in ["", *EVERY_COMMAND[command]]


def changed(text, generator):
    """A text with a few of its lines, words or letters lost, repeated, moved or replaced."""
    for _ in range(generator.randrange(1, 4)):
        separator = generator.choice(["\n", " ", '"', "="])
        parts = text.split(separator)
        place = generator.randrange(len(parts))
        match generator.randrange(4):
            case 0:
                del parts[place]
            case 1:
                parts.insert(place, parts[generator.randrange(len(parts))])
            case 2:
                parts[place] = generator.choice(VALUES)
            case 3:
                generator.shuffle(parts)
        text = separator.join(parts)
    return text


def test_any_scenario_is_valid_or_refused_in_one_line(outcome, tmp_path):
    generator = random.Random("scenarios")
    for _ in range(CASES):
        text = changed(SMALL, generator)
        (tmp_path / "changed.toml").write_text(text, encoding="utf-8")
        code, err = outcome("validate", "changed.toml")
        assert is_handled(code, err), text


def test_any_damage_of_a_run_is_reported_in_one_line(outcome, tmp_path):
    """In a JSON file, or one table for another, or a file that is cut off."""
    generator = random.Random("folders")
    whole = make_run(mice=5, samples=5).save(tmp_path / "whole")
    names = [path.name for path in whole.iterdir() if path.name != "run.json"]
    failed = 0
    for _ in range(max(CASES // 10, 8)):
        shutil.copytree(whole, tmp_path / "damaged")
        path = tmp_path / "damaged" / generator.choice(names)
        if path.suffix == ".json":
            path.write_text(changed(path.read_text(encoding="utf-8"), generator), encoding="utf-8")
        elif generator.random() < 0.5:
            content = path.read_bytes()
            path.write_bytes(content[: generator.randrange(len(content))])
        else:
            shutil.copy(whole / generator.choice(names), path)
        code, err = outcome("report", "damaged")
        assert is_handled(code, err), path
        failed += code
        shutil.rmtree(tmp_path / "damaged")
    assert failed, "no damage was found"
