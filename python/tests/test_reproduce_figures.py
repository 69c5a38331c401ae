# SPDX-License-Identifier: Apache-2.0
import math
import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib.axes import Axes

import penstock_papers
from penstock.show import style
from penstock_papers import drawing, experiment_files, reproduce, small_svg

from .conftest import SMALL, make_run

FIGURES = """
names = { fairq = "RWNDQ" }
why = "Because."

[over]
"traffic.mice.flows" = [2, 6]
"fabric.bottleneck.buffer" = ["20 packets", "100 packets"]
[quick]
seeds = 1

[[figure]]
name = "line"
title = "Goodput"
where = "§1, Fig. 1"
meaning = "Higher is better."
kind = "line"
x = "fabric.bottleneck.buffer"
x_label = "buffer (packets)"
y_label = "goodput"
log = "xy"
measure = { group = "elephants", field = "goodput_bps.mean" }

[[figure]]
name = "cdf"
title = "Completion times"
where = "§1, Fig. 2"
meaning = "Further left is faster."
kind = "cdf"
x_label = "completion time"
measure = { group = "mice", field = "fct_s", each = "mean" }
schemes = ["fairq"]
runs = ["6 20 packets"]

[[figure]]
name = "bars"
title = "Drops"
where = "§1, Fig. 3"
meaning = "Lower is better."
kind = "bars"
y_label = "drops"
measure = { port = "left->right", field = "drops" }

[[figure]]
name = "histogram"
title = "Packets"
where = "§1, Fig. 4"
meaning = "Narrow is fair."
kind = "histogram"
x_label = "packets"
bins = 5
runs = ["6 100 packets"]
measure = { group = "mice", field = "packets" }

[[figure]]
name = "heat"
title = "Drops"
where = "§1, Fig. 5"
meaning = "Light is better."
kind = "heat"
x = "traffic.mice.flows"
y = "fabric.bottleneck.buffer"
measure = { port = "left->right", field = "drops" }
"""

CLAIM = """
[[claim]]
id = "ends"
text = "every mouse finishes, whatever the buffer and however many there are"
where = "§1, Fig. 1"
published = "as good as always, in words that are long"
run = "*"
measure = { scheme = "fairq", group = "mice", field = "fct_s.mean" }
relation = "higher"
against = { scheme = "drop-tail", group = "mice", field = "fct_s.mean" }
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "papers/exp-1").mkdir(parents=True)
    (folder / "papers/exp-1/claims.toml").write_text(FIGURES)
    (folder / "papers/exp-1/scenario.toml").write_text(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(penstock_papers, "experiments_dir", lambda: folder / "papers")
        patch.setattr(reproduce, "REPORTS", 0)
        (done,), _ = reproduce.reproduce(["exp-1"], seeds=2, out=folder / "out")
    return {one.drawing.name.removeprefix("exp-1-"): one.drawing for one in done.drawn}


def texts(drawing):
    return [
        element.text
        for element in ET.fromstring(drawing.svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def test_each_kind_of_figure_is_drawn(drawn):
    assert list(drawn) == ["line", "cdf", "bars", "histogram", "heat"]
    for figure in drawn.values():
        assert figure.pdf().startswith(b"%PDF")
        assert re.fullmatch(r"[^.]+\.", figure.meaning)


def test_schemes_are_named_as_the_paper_does_and_have_one_colour_each(drawn):
    for name in ("line", "cdf", "bars"):
        assert "RWNDQ" in texts(drawn[name])
        assert "fairq" not in texts(drawn[name])
        colours = set(re.findall(r"#[0-9a-f]{6}", drawn[name].svg))
        looks = style.looks(["drop-tail", "fairq"])
        assert looks["fairq"].colour in colours, "the same as on every page"
        assert (looks["drop-tail"].colour in colours) == (name != "cdf")


def test_axes_have_labels_and_units(drawn):
    line = texts(drawn["line"])
    assert {"buffer (packets)", "goodput", "flows 2", "flows 6"} <= set(line)
    assert any(text.endswith("b/s") for text in line)
    assert any(re.fullmatch(r"\d+ [mµ]s", text) for text in texts(drawn["cdf"]))
    assert {"2", "6", "20 packets", "100 packets"} <= set(texts(drawn["heat"]))
    assert "2 20 packets" in texts(drawn["bars"])


def test_what_was_left_out_is_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    monkeypatch.setattr(reproduce, "REPORTS", 0)
    (tmp_path / "papers/exp-1").mkdir(parents=True)
    only = FIGURES.replace('runs = ["6 20 packets"]', 'runs = ["2 20 packets"]').replace(
        "seeds = 1",
        'over = { "traffic.mice.flows" = [6], "fabric.bottleneck.buffer" = ["20 packets"] }',
    )
    (tmp_path / "papers/exp-1/claims.toml").write_text(only)
    (tmp_path / "papers/exp-1/scenario.toml").write_text(SMALL)
    (done,), _ = reproduce.reproduce(["exp-1"], quick=True, out=tmp_path / "out")
    names = [one.drawing.name for one in done.drawn]
    assert names == ["exp-1-line", "exp-1-bars", "exp-1-heat"]
    assert list(drawing.draw(experiment_files.load("exp-1"), {})) == []


def test_a_bar_without_a_number_is_a_gap(tmp_path, monkeypatch):
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")
    (tmp_path / "papers/exp-1").mkdir(parents=True)
    times = FIGURES.split("[[figure]]")[3].replace(
        'port = "left->right", field = "drops"', 'group = "mice", field = "fct_s.mean"'
    )
    (tmp_path / "papers/exp-1/claims.toml").write_text(f"[[figure]]{times}")
    (tmp_path / "papers/exp-1/scenario.toml").write_text(SMALL)
    made = experiment_files.load("exp-1")
    run = make_run(schemes=("drop-tail", "fairq"))
    run.summary["results"][0]["groups"]["mice"]["fct_s"] = None
    (bars,) = drawing.draw(made, {"": run})
    none, some = bars.data["series"].values()
    assert none == [[None, None]]
    assert some[0][0] > 0
    heights = []
    monkeypatch.setattr(Axes, "bar", lambda _, __, height, *___, **____: heights.extend(height))
    drawing.redraw(made.figures[0], made, bars.data)
    assert math.isnan(heights[0])
    assert heights[1] == some[0][0]


def test_the_documentation_keeps_figures_small(drawn):
    made = small_svg.small(drawn["line"].svg)
    assert len(made) < len(drawn["line"].svg)
    assert "metadata" not in made
    assert set(re.findall(r'(?:href="#|url\(#)(\w+)', made)) <= set(re.findall(r'id="(\w+)"', made))
    assert "opacity: 0.03" in small_svg.small(drawn["heat"].svg), "the faintest cell"
    words = "".join(ET.fromstring(drawn["line"].svg).itertext()).split()
    assert "".join(ET.fromstring(made).itertext()).split() == [
        word for word in words if word not in {"image/svg+xml", "Penstock"}
    ]
