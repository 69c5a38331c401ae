# SPDX-License-Identifier: Apache-2.0
import pytest

from penstock import columns, terminal

from .conftest import make_run


def test_the_best_is_marked_as_shown_and_not_where_all_are_alike():
    timeouts = next(column for column in columns.GROUP if column.path == "timeouts")
    goodput = next(column for column in columns.GROUP if column.path == "goodput_bps.mean")
    assert timeouts.best([{"timeouts": 3}, {"timeouts": 0}, {"timeouts": 0}]) == {1, 2}
    assert timeouts.best([{"timeouts": 3}, {"timeouts": 3}]) == set()
    rates = [{"goodput_bps": {"mean": mean}} for mean in (1e6, 9.401e6, 9.4e6)]
    assert goodput.best(rates) == {1, 2}


def test_a_missing_value_is_shown_as_such_and_is_never_best():
    mean = next(column for column in columns.GROUP if column.path == "fct_s.mean")
    rows = [{"fct_s": None}, {"fct_s": {"mean": 0.1}}, {"fct_s": {"mean": 0.2}}]
    assert mean.text(rows[0]) == "–"
    assert mean.best(rows) == {1}


def test_closed_loops_begin_as_many_flows_as_they_can(made_up):
    made_up.summary["results"][1]["groups"]["mice"]["flows"] = 12_500
    _, mice, _ = columns.blocks(made_up.summary)
    assert mice.about == "30 to 12\u202f500 flows"


def test_endless_flows_show_goodput_instead_of_completion(made_up):
    elephants, mice, port = columns.blocks(made_up.summary)
    assert elephants.columns is columns.ENDLESS
    assert mice.columns is columns.GROUP
    assert port.title == "a->b"


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_tables_fit_a_hundred_columns(seeds, capsys):
    terminal.show(make_run(schemes=("fairq-paper", "hcf"), seeds=seeds).summary)
    lines = capsys.readouterr().out.splitlines()
    assert any("±" in line for line in lines) == (len(seeds) > 1)
    assert "…" not in "".join(lines), "cut off"
    assert any("hcf" in line for line in lines)
    assert max(map(len, lines)) <= 100


class Terminal:
    def __init__(self, is_terminal):
        self.text, self._is_terminal = "", is_terminal

    def isatty(self):
        return self._is_terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_is_shown_on_a_terminal_and_cleared():
    stream = Terminal(is_terminal=True)
    with terminal.Progress(stream) as progress:
        progress(0.5, "hcf")
    assert "50%  hcf" in stream.text
    assert stream.text.endswith("\x1b[2K")


def test_progress_is_silent_elsewhere():
    stream = Terminal(is_terminal=False)
    with terminal.Progress(stream) as progress:
        progress(0.5, "hcf")
    assert stream.text == ""
