# SPDX-License-Identifier: Apache-2.0
"""The command line end to end, as a user meets it."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
import typer

from penstock import cli, papers, scenario
from penstock.runs import Run

COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]
SUBCOMMANDS = [
    f"{group.name} {command.callback.__name__}"
    for group in cli.app.registered_groups
    for command in group.typer_instance.registered_commands
]
SLOW = {"polars", "matplotlib", "numpy", "rich.console", "optuna"}
"""What takes longer to load than an error may take, 0.3 s."""
PENSTOCK = Path(sys.executable).with_name("penstock")
SWEPT = ("--over", "tcp.mss=1 kB")
TUNED = ("--scheme", "hscc", "--minimize", "mice.fct.p99")


def penstock(*arguments, cwd=None, code=0, stdin=""):
    done = subprocess.run(
        [PENSTOCK, *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run with two threads, its output, and its folder."""
    from .conftest import SMALL

    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.toml").write_text(SMALL)
    return penstock("run", "small.toml", "--jobs", "2", cwd=folder), folder / "runs/small"


def test_a_run_shows_a_table_and_writes_its_folder(ran):
    done, folder = ran
    for word in ("drop-tail", "fairq", "elephants", "mice", "FCT mean", "p99", "utilization"):
        assert word in done.stdout
    assert done.stdout.endswith("Run:    runs/small\nReport: runs/small/report.html\n")
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 100
    files = {path.name for path in folder.iterdir()}
    tables = {"flows.parquet", "queues.parquet", "ports.parquet"}
    pages = {"report.html", "scenario.toml", "run.json", "summary.json"}
    assert files == tables | pages
    info = json.loads((folder / "run.json").read_text())
    assert info["command"].endswith("run small.toml --jobs 2")
    assert info["schemes"] == ["drop-tail", "fairq"]


def test_the_resolved_scenario_runs_again(ran, tmp_path):
    _, folder = ran
    penstock("run", folder / "scenario.toml", "--out", tmp_path / "again")
    assert (tmp_path / "again/flows.parquet").read_bytes() == (
        folder / "flows.parquet"
    ).read_bytes()


def test_any_number_of_threads_gives_the_same_bytes(ran, small, tmp_path):
    _, folder = ran
    one = tmp_path / "one"
    penstock("run", small, "--jobs", 1, "--out", one)
    for name in ("flows.parquet", "queues.parquet", "ports.parquet", "scenario.toml"):
        assert (one / name).read_bytes() == (folder / name).read_bytes(), name
    one, two = (json.loads((path / "summary.json").read_text()) for path in (one, folder))
    for result in one["results"] + two["results"]:
        del result["performance"]
    assert one == two


def test_json_is_one_object_and_no_folder(small, tmp_path):
    done = penstock("run", small, "--json", "--scheme", "fairq", cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert set(summary) == {"scenario", "seeds", "results"}
    (result,) = summary["results"]
    assert {"scheme", "tcp", "groups", "ports", "performance"} <= set(result)
    assert result["scheme"] == "fairq"
    assert result["tcp"] == "newreno"
    mice = result["groups"]["mice"]
    assert {"flows", "finished", "missed_deadlines", "jain", "retransmits", "timeouts"} <= set(mice)
    assert {"mean", "sd", "p50", "p90", "p95", "p99", "max"} <= set(mice["fct_s"])
    assert {"mean", "min", "max"} <= set(mice["goodput_bps"])
    (port,) = result["ports"].values()
    assert {"drops", "utilization", "queue_bytes"} <= set(port)
    assert {"mean", "p99", "max"} <= set(port["queue_bytes"])
    assert {"wall_s", "packet_hops", "packet_hops_per_s", "peak_rss_bytes"} <= set(
        result["performance"]
    )
    assert done.stderr == ""
    assert not (tmp_path / "runs").exists()


def test_seeds_are_shown_with_their_intervals(small, tmp_path):
    done = penstock("run", small, "--json", "--seeds", 2, "--out", tmp_path / "run")
    summary = json.loads(done.stdout)
    assert summary == json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["seeds"] == [1, 2]
    assert set(summary["results"][0]["ci95"]) == {"groups", "ports"}


def test_a_second_run_gets_its_own_folder(ran, small):
    _, folder = ran
    done = penstock("run", small, "--scheme", "fairq", cwd=folder.parents[1])
    assert "runs/small-2/report.html" in done.stdout


@pytest.mark.parametrize("group", ["lab", "fleet"])
def test_a_group_of_commands_without_one_prints_its_help(group):
    out = penstock(group).stdout
    assert out.startswith(f"Usage: penstock {group} [OPTIONS] COMMAND")
    assert "\nCommands:\n" in out


def test_the_help_has_where_a_second_run_goes():
    words = " ".join(penstock("run", "--help").stdout.replace("│", " ").split())
    assert "Default: runs/NAME, or where that is taken runs/NAME-2" in words


def test_a_report_is_made_of_a_run(ran, tmp_path):
    _, folder = ran
    page = tmp_path / "elsewhere" / "page.html"
    assert penstock("report", folder, "--out", page).stdout == f"Report: {page}\n"
    assert page.read_bytes() == (folder / "report.html").read_bytes()


def test_validate_prints_a_scenario_with_its_defaults(small):
    printed = penstock("validate", small, "--set", "traffic.mice.flows=5").stdout
    document = tomllib.loads(printed)
    assert document["traffic"]["mice"]["flows"] == 5
    assert document["measure"]["queue_every"] == "500 us", "a 200th of 100 ms"
    longer = penstock("validate", small, "--set", "duration=1 s").stdout
    assert tomllib.loads(longer)["measure"]["queue_every"] == "1 ms"


def test_lists():
    assert "drop-tail" in penstock("schemes").stdout
    assert "demo" in penstock("scenarios").stdout
    assert json.loads(penstock("schemes", "--json").stdout)["schemes"]
    assert json.loads(penstock("scenarios", "--json").stdout)["scenarios"]
    assert json.loads(penstock("schema").stdout)
    penstock("reproduce", "--list")
    assert penstock("--version").stdout.startswith("penstock ")


def test_lists_wrap_and_begin_with_the_templates(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    schemes = penstock("schemes").stdout
    assert max(map(len, schemes.splitlines())) <= 60
    assert "Floyd, Jacobson, ToN 1993" in " ".join(schemes.split())
    scenarios = penstock("scenarios").stdout
    places = [
        scenarios.index(name) for name in ("demo ", "web ", "bench/", "crosscheck/", "papers/")
    ]
    assert places == sorted(places)


def test_without_the_papers_the_product_works(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(papers, "_PACKAGE", "no_such_package")
    assert not papers.is_installed()
    assert not [name for name, _ in scenario.templates() if name.startswith("papers/")]
    (tmp_path / "reproduction.json").write_text("{}")
    monkeypatch.setattr(sys, "argv", ["penstock", "report", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    assert "no_such_package is not installed; run penstock in" in capsys.readouterr().err


def test_the_help_describes_each_command_in_a_whole_sentence():
    shown = " ".join(penstock("--help").stdout.split())
    assert "..." not in shown.partition("Commands:")[2]
    assert "..." not in penstock("lab", "--help").stdout.partition("Commands:")[2]
    assert "show a table and write the run's folder. report" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "demoo"], 2, "did you mean 'demo'?"),
        (["run"], 2, "Missing argument"),
        (["ruin"], 2, "No such command 'ruin'. Did you mean 'run'? (see"),
        (["run", "demo", "--seeds", "0"], 2, "--seeds"),
        (["run", "demo", "--seeds", "1,1"], 2, "--seeds 1,1: 1 is named twice"),
        (["run", "demo", "--seeds", "100001"], 2, "--seeds 100001: is 100001; allowed: 1"),
        (["validate", ""], 2, "scenario: is an empty text"),
        (["validate", "/dev/null"], 2, "/dev/null: is neither a file nor a pipe"),
        (["compare", "nowhere", "nowhere"], 2, "nowhere: no such folder"),
        (["run", "demo", "--seeds", "1,x"], 2, "--seeds 1,x: give a number of seeds, such as"),
        (["report", "nowhere", "--out", "/proc/x"], 2, "nowhere: no such folder"),
        (["run", "demo", "--set", "tcp.min_rto"], 2, "give KEY=VALUE"),
        (["run", "demo", "--scheme", "hcff"], 2, " --scheme hcff: no such scheme; allowed: drop"),
        (["run", "demo", "--scheme", "hcff"], 2, 'did you mean "hcf"?'),
        (["run", "demo", "--set", "trafic.mice.flows=1"], 2, "trafic"),
        (["run", "demo", "--out", "/"], 2, "give another --out"),
        (["run", "demo", "--out", "/dev/null/run"], 2, "cannot be written (/dev/null is"),
        (["sweep", "demo", *SWEPT, "--out", "/dev/null/s"], 2, "/dev/null/s: cannot be written ("),
        (["tune", "demo", *TUNED, "--out", "/dev/null/t"], 2, "/dev/null/t: cannot be written ("),
        (["report", "/"], 2, "nothing to report on"),
        (["report", "runs/nowhere"], 2, "runs/nowhere: no such folder"),
        (["reproduce", "sic-4"], 2, "no such experiment"),
        (["validate", "/dev/null/x"], 2, "no such file"),
        (["run", "demo", "--out", "bad\udcff"], 2, "'bad\\udcff': is no UTF-8; rename it"),
    ],
)
def test_errors_are_one_line(arguments, code, message):
    done = penstock(*arguments, code=code)
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("penstock: ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_characters_shows_others(encoding, small, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    shown = subprocess.run(
        [PENSTOCK, "run", small, "--seeds", "2"], cwd=tmp_path, capture_output=True, check=True
    ).stdout.decode(encoding)
    assert " us" in shown if encoding == "ascii" else " \xb5s" in shown
    assert (tmp_path / "runs/small/report.html").exists()


@pytest.mark.parametrize("shell", ["validate -", "validate /dev/stdin", "validate <(cat)"])
def test_scenarios_are_read_from_pipes(shell, small):
    command = ["bash", "-c", f"cat '{small}' | '{PENSTOCK}' {shell}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == penstock("validate", small).stdout


def test_a_sweep_of_a_pipe_reads_it_once(small, tmp_path):
    sweep = f"'{PENSTOCK}' sweep - --over traffic.mice.flows=1,2 --scheme fairq --json"
    command = ["bash", "-c", f"cat '{small}' | {sweep}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["folder"] == "runs/stdin-sweep"


def test_seeds_may_be_a_list_and_jobs_any_number(small):
    done = penstock("run", small, "--scheme", "fairq", "--json", "--seeds", "3,5", "--jobs", 10**30)
    assert json.loads(done.stdout)["seeds"] == [3, 5]


def test_a_page_that_cannot_be_written_is_refused(ran, tmp_path):
    _, folder = ran
    for place, code in ((tmp_path, 2), ("/proc/page.html", 2)):
        error = penstock("report", folder, "--out", place, code=code).stderr
        assert error.startswith(f"penstock: {place}: cannot be written (")


def test_files_of_a_run_that_do_not_fit_are_a_failure(ran, tmp_path):
    _, folder = ran
    summary = json.loads((folder / "summary.json").read_text())
    for name, content in (
        ("summary.json", b"{}"),
        ("summary.json", json.dumps(summary | {"results": [{}]}).encode()),
        ("queues.parquet", (folder / "ports.parquet").read_bytes()),
    ):
        damaged = shutil.copytree(folder, tmp_path / "damaged", dirs_exist_ok=True)
        (damaged / name).write_bytes(content)
        for arguments in (("report", damaged), ("compare", folder, damaged)):
            error = penstock(*arguments, code=1, cwd=tmp_path).stderr
            assert "damaged" in error
            assert error.count("\n") == 1


def test_a_damaged_run_is_a_failure(ran, tmp_path):
    _, folder = ran
    (tmp_path / "run.json").write_bytes((folder / "run.json").read_bytes())
    assert "damaged" in penstock("report", tmp_path, code=1).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_first_run_ended_leaves_nothing(number, small, tmp_path):
    """The runs would take an hour, so an end within this test's time limit is the signal's."""
    command = [PENSTOCK, "run", small, "--set", "duration=20000 s"]
    ours, theirs = pty.openpty()  # progress is shown in terminals only
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        try:
            shown = ""
            while "0 of 2" not in shown:
                shown += os.read(ours, 4096).decode(errors="replace")
            running.send_signal(number)
            stdout, _ = running.communicate()
        finally:
            running.kill()
        shown = os.read(ours, 1 << 20).decode(errors="replace")
        os.close(ours)
    assert running.returncode == 128 + number
    assert stdout == b""
    assert "100%" not in shown
    assert shown.rpartition("\x1b[2K")[2] == "penstock: interrupted\r\n"
    assert list((tmp_path / "runs").iterdir()) == []


def test_sigterm_while_the_report_is_drawn_leaves_the_run(small, tmp_path):
    sent = f"""
        import os, signal, sys
        from penstock.cli.program import main
        from penstock.show import run_page
        run_page.write = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
        sys.argv = ["penstock", "run", {str(small)!r}]
        main()
    """
    command = [sys.executable, "-c", textwrap.dedent(sent)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == (
        "penstock: interrupted; the run is in runs/small: `penstock report runs/small` draws its "
        "page\n"
    )
    assert Run.load(tmp_path / "runs/small").info["name"] == "small"
    assert "Report: runs/small/report.html" in penstock("report", "runs/small", cwd=tmp_path).stdout


def test_a_closed_pipe_is_no_traceback(small):
    shell = f"'{PENSTOCK}' validate '{small}' | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def of_help(words):
    """The command of some words."""
    command = typer.main.get_command(cli.app)
    for word in words.split():
        command = command.commands[word]
    return command


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
def test_help_describes_every_argument_and_option(command):
    shown = " ".join(penstock(*command.split(), "--help").stdout.split())
    params = of_help(command).params
    assert not [each.name for each in params if not each.help or each.help[:30] not in shown]


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_help_of_a_subcommand_has_an_example(command):
    assert re.match(rf"Example: (sudo )?penstock {command}", of_help(command).epilog)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_quick_and_has_an_example(command):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", PENSTOCK, *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert ("Example: penstock" if command else "Begin with: penstock demo") in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    heavy = {"polars", "matplotlib", "numpy", "rich.console", "penstock._native"}
    assert not heavy & imported


@pytest.mark.parametrize(
    ("command", "code", "heavy"),
    [
        ("run nosuch", 2, SLOW),
        ("sweep small.toml --over traffic.mice.flows=", 2, SLOW),
        ("sweep small.toml --over traffic.mouse.flows=1", 2, SLOW),
        ("sweep small.toml --over traffic.mice.flows=1 --show nope", 2, SLOW),
        ("tune small.toml --scheme nosuch --minimize mice.fct.p99", 2, SLOW),
        ("tune small.toml --scheme fairq --minimize mice.fct.p99 --param x", 2, SLOW),
        ("compare here nowhere", 2, SLOW),
        ("report nowhere", 2, SLOW),
        ("export nowhere --to x.pcapng", 2, SLOW),
        ("reproduce nosuch", 2, SLOW),
        ("reproduce sicc-4 --open --again there", 2, SLOW),
        ("reproduce sicc-4 --page /proc/page.md", 2, SLOW),
        ("reproduce --again nowhere", 2, SLOW),
        ("tune small.toml --scheme fairq --minimize mice.fct.p98", 2, SLOW),
        ("run small.toml", 0, {"fontTools.subset", "matplotlib.backends.backend_pdf"}),
    ],
)
def test_a_command_loads_only_what_it_needs(command, code, heavy, small):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", PENSTOCK, *command.split()],
        cwd=small.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "penstock.folders" in imported
    assert not heavy & imported


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("penstock re", ["report", "reproduce"]),
        ("penstock run lab/incast", ["lab/incast", "lab/incast-elephants"]),
        ("penstock run small", ["small.toml"]),
        ("penstock run small.toml --set tcp.prof", ["tcp.profile="]),
        ("penstock run demo --scheme hcf", ["hcf", "hcf-paper", "hcf-fairq"]),
        ("penstock show fairs", ["fairswitch"]),
        ("penstock run small.toml --set traffic.mice.si", ["traffic.mice.size="]),
        ("penstock sweep web --over traffic.web.server", ["traffic.web.server_think="]),
        ("penstock run web --set fabric.ecmp", ["fabric.ecmp="]),
        ("penstock sweep web --show web.fct.p99", ["web.fct.p99", "web.fct.p999"]),
        ("penstock sweep small.toml --show mice.fct.p99", ["mice.fct.p99", "mice.fct.p999"]),
        ("penstock tune small.toml --scheme fairs", ["fairswitch"]),
        ("penstock tune small.toml --minimize bottleneck.queue.m", ["bottleneck.queue.max"]),
        ("penstock reproduce hcf-2", ["hcf-2a", "hcf-2b", "hcf-2c"]),
        ("penstock controller st", ["status"]),
        ("penstock controller run sma", ["small.toml"]),
    ],
)
def test_the_shell_completes(words, completed, small):
    count = str(len(words.split()) - 1)
    complete = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
    shown = subprocess.run(
        [PENSTOCK],
        env={**os.environ, **complete},
        cwd=small.parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert shown == completed


def test_the_controller_takes_its_words_as_they_are(tmp_path):
    program = tmp_path / "penstock-controller"
    program.write_text('#!/bin/sh\necho "$@"; exit 3\n')
    program.chmod(0o755)
    script = "import sys; from penstock.cli import program; from penstock.execution import build; "
    script += f"build.find = lambda _: {str(program)!r}; "
    script += "sys.argv = ['penstock', 'controller', *sys.argv[1:]]; program.main()"
    for words in (["status", "x.toml", "--json"], ["--version"]):
        command = [sys.executable, "-c", script, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.stdout.split(), done.returncode) == (words, 3)


def test_a_scheme_is_shown_with_its_parameters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = penstock("show", "fairq").stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert "scheme.fairq.window.alpha" in shown
    assert "Target queue, as a share of the buffer" in shown
    assert "no parameters" in penstock("show", "drop-tail").stdout
    assert "did you mean 'hscc'?" in penstock("show", "hsc", code=2).stderr
    for scheme in scheme_list():
        rows = json.loads(penstock("show", scheme, "--json").stdout)["parameters"]
        assert all(row["key"].startswith(f"scheme.{scheme}.") and row["meaning"] for row in rows)
    (codel,) = [
        row
        for row in json.loads(penstock("show", "codel", "--json").stdout)["parameters"]
        if row["key"] == "scheme.codel.queue.target"
    ]
    assert codel["value"] == "100 us"


def scheme_list():
    return ["red", "pie", "fairswitch", "sicc", "hcf-fairq"]


def test_a_report_may_be_left_out(small, tmp_path):
    done = penstock("run", small, "--scheme", "fairq", "--no-report", cwd=tmp_path)
    assert done.stdout.endswith("Run:    runs/small\n")
    assert not (tmp_path / "runs/small/report.html").exists()
    assert Run.load(tmp_path / "runs/small").flows.height
