# SPDX-License-Identifier: Apache-2.0
import pytest
from rich.console import Console

from penstock.show import summary_table, terminal

from .conftest import make_run


def test_the_best_is_marked_as_shown_and_not_where_all_are_alike():
    timeouts = next(column for column in summary_table.GROUP if column.path == "timeouts")
    goodput = next(column for column in summary_table.GROUP if column.path == "goodput_bps.mean")
    assert timeouts.best([{"timeouts": 3}, {"timeouts": 0}, {"timeouts": 0}]) == {1, 2}
    assert timeouts.best([{"timeouts": 3}, {"timeouts": 3}]) == set()
    rates = [{"goodput_bps": {"mean": mean}} for mean in (1e6, 9.401e6, 9.4e6)]
    assert goodput.best(rates) == {1, 2}


def test_a_missing_value_is_shown_as_such_and_is_never_best():
    mean = next(column for column in summary_table.GROUP if column.path == "fct_s.mean")
    rows = [of(9, None), of(9, {"mean": 0.1}), of(9, {"mean": 0.2})]
    assert mean.text(rows[0]) == "–"
    assert mean.best(rows) == {1}


def of(finished, fct, flows=10):
    return {"finished": finished, "flows": flows, "fct_s": fct}


def test_who_leaves_slow_flows_unfinished_does_not_win():
    finished, mean, p99, longest, *_ = summary_table.GROUP
    fct = [{"mean": s, "p99": s, "max": s} for s in (0.1, 0.3, 0.2)]
    rows = [of(5, fct[0]), of(10, fct[1]), of(10, fct[2])]
    assert [finished.text(row) for row in rows] == ["5 of 10", "10 of 10", "10 of 10"]
    assert finished.best(rows) == {1, 2}
    for column in (mean, p99, longest):
        assert column.best(rows) == {2}
    assert p99.text(rows[0]) == summary_table.UNFINISHED
    assert p99.text(rows[1]) == "300 ms"
    assert mean.best(rows[:2]) == set(), "a single row has nothing to compare with"


def test_a_mean_of_counts_is_called_one():
    run = make_run(seeds=(1, 2))
    run.summary["results"][0]["groups"]["mice"]["flows"] = 29.5
    run.summary["results"][1]["groups"]["mice"]["flows"] = 29.5
    _, mice, _ = summary_table.blocks(run.summary)
    assert mice.about == "29.5 flows (mean of the seeds)"


def test_the_busiest_ports_are_marked_as_some_of_many(made_up):
    for result in made_up.summary["results"]:
        result["ports"] = {f"port{n}": result["ports"]["a->b"] for n in range(16)}
    abouts = {block.about for block in summary_table.blocks(made_up.summary)[2:]}
    assert abouts == {"port, one of the 3 of 16 that dropped most"}


def test_ports_without_drops_are_not_those_that_dropped_most(made_up):
    for result in made_up.summary["results"]:
        port = {**result["ports"]["a->b"], "drops": 0}
        result["ports"] = {f"port{n}": port for n in range(16)}
    abouts = {block.about for block in summary_table.blocks(made_up.summary)[2:]}
    assert abouts == {"port, one of 16, none of which dropped"}


def test_closed_loops_begin_as_many_flows_as_they_can(made_up):
    made_up.summary["results"][1]["groups"]["mice"]["flows"] = 12_500
    _, mice, _ = summary_table.blocks(made_up.summary)
    assert mice.about == "30 to 12\u00a0500 flows"


def test_flows_that_should_have_ended_show_that_none_did(made_up):
    for result in made_up.summary["results"]:
        result["groups"]["mice"] |= {"finished": 0, "unfinished": 30, "fct_s": None}
    _, mice, _ = summary_table.blocks(made_up.summary)
    assert mice.columns is summary_table.GROUP
    assert mice.columns[0].text(mice.rows[0]) == "0 of 30"


def test_endless_flows_show_goodput_instead_of_completion(made_up):
    elephants, mice, port = summary_table.blocks(made_up.summary)
    assert elephants.columns is summary_table.ENDLESS
    assert elephants.about == "1 flow"
    assert mice.columns is summary_table.GROUP
    assert port.title == "a->b"


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_tables_fit_and_no_value_is_cut(seeds, width, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "console", lambda: Console(highlight=False, width=width))
    summary = make_run(schemes=("fairq-paper", "hcf"), seeds=seeds).summary
    terminal.show(summary)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert ("Means of 3 seeds" in text) == (len(seeds) > 1)
    assert "…" not in text, "cut off"
    assert max(map(len, lines)) <= width
    *_, port = summary_table.blocks(summary)
    shown = next(line.split() for line in reversed(lines) if line.startswith("hcf"))
    whole = " ".join(port.columns[0].with_spread(port.rows[1], port.ci95[1]).split())
    assert " ".join(shown[1:]).startswith(whole)
    if width in {40, 100}:
        assert ("no room for: " in text) == (width == 40)


class Terminal:
    def __init__(self, is_terminal):
        self.text, self._is_terminal = "", is_terminal

    def isatty(self):
        return self._is_terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_is_shown_on_a_terminal_and_cleared(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal(is_terminal=True)
    with terminal.Progress(stream) as progress:
        progress(0.5, "hcf")
    assert "50%  hcf" in stream.text
    assert stream.text.endswith("\x1b[2K")


@pytest.mark.parametrize(("is_terminal", "name"), [(False, "xterm"), (True, "dumb")])
def test_progress_is_silent_elsewhere(is_terminal, name, monkeypatch):
    monkeypatch.setenv("TERM", name)
    stream = Terminal(is_terminal=is_terminal)
    with terminal.Progress(stream) as progress:
        progress(0.5, "hcf")
    assert stream.text == ""


def test_a_mean_of_fewer_seeds_has_their_number():
    mean = next(column for column in summary_table.GROUP if column.path == "fct_s.mean")
    row = of(9, {"mean": 0.1}) | {"of_seeds": {"fewer": {"fct_s.mean": 3}}}
    assert mean.text(row) == "100 ms (3 seeds)"
    assert mean.with_spread(row, {"fct_s": {"mean": 0.01}}) == "100 ms ±10 % (3 seeds)"


def test_flows_that_never_began_are_to_finish_too():
    finished = summary_table.GROUP[0]
    assert finished.text(of(50, None, 50) | {"unfinished": 50}) == "50 of 100"
    assert summary_table._flows([of(50, None, 50) | {"unfinished": 50}]) == "50 flows begun"
    rows = [of(50, None, 50) | {"unfinished": 50}, of(90, None, 100) | {"unfinished": 10}]
    assert finished.best(rows) == {1}


def test_who_leaves_a_job_unfinished_does_not_win():
    """All but one of 10 000 flows finished, yet one of ten jobs did not."""
    rows = [
        of(flows, None, 10_000)
        | {"jobs": {"begun": 10, "finished": jobs, "unfinished": 10 - jobs, "time_s": {"mean": s}}}
        for flows, jobs, s in ((9_999, 9, 0.1), (10_000, 10, 0.3), (10_000, 10, 0.2))
    ]
    mean = next(column for column in summary_table.JOBS if column.path == "jobs.time_s.mean")
    assert mean.best(rows) == {2}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_line_of_progress_is_not_wrapped(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal(is_terminal=True)
    with terminal.Progress(stream) as progress:
        progress._begun -= 100
        progress(0.5, "trials 37 to 40 of 40: 12 of 20 runs")
    *lines, last = stream.text.replace("\x1b[2K", "").split("\r")
    assert last == ""
    assert max(map(len, lines)) < columns
    assert ("20 runs, 100 s left" in stream.text) == (columns > 80)
