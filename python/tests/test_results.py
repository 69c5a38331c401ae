# SPDX-License-Identifier: Apache-2.0
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from penstock import RunError, ScenarioError, folders, runs
from penstock.runs import Run


def test_a_run_comes_back_from_its_folder(made_up, tmp_path):
    loaded = Run.load(made_up.save(tmp_path / "run"))
    assert loaded.summary == made_up.summary
    assert loaded.info == made_up.info
    assert loaded.scenario == made_up.scenario
    for table in runs.TABLES:
        assert_frame_equal(getattr(loaded, table), getattr(made_up, table))


def test_an_earlier_run_is_replaced_and_nothing_else_is(made_up, tmp_path):
    folder = made_up.save(tmp_path / "run", report=True)
    (folder / "notes.txt").write_text("a year's work")
    (folder / "figures").mkdir()
    (folder / "figures" / "mine.svg").touch()
    (folder / "figures" / "fct-mice.svg").touch()
    replace(made_up, info={"name": "another"}).save(folder)
    assert Run.load(folder).info == {"name": "another"}
    assert not (folder / "report.html").exists(), "it would be the earlier run's"
    assert (folder / "notes.txt").read_text() == "a year's work"
    assert [path.name for path in (folder / "figures").iterdir()] == ["mine.svg"]

    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter1.tex").write_text("precious")
    with pytest.raises(ScenarioError, match=r"thesis: exists and is not a run's folder"):
        made_up.save(other)
    assert (other / "chapter1.tex").read_text() == "precious"


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(IsADirectoryError):
        folders.write(tmp_path / "page.html", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_failed_save_leaves_the_earlier_run_and_no_litter(made_up, tmp_path, monkeypatch):
    folder = made_up.save(tmp_path / "run")
    before = (folder / "summary.json").read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Run, "report", full_disk)
    with pytest.raises(RunError, match=r"run: cannot be written \(No space left on device\)"):
        made_up.save(folder, report=True)
    assert (folder / "summary.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    folders.write(pipe, "text")
    assert pipe.is_fifo()
    assert os.read(reader, 100) == b"text"
    os.close(reader)


def test_a_damaged_run_is_reported_as_such(made_up, tmp_path):
    folder = made_up.save(tmp_path / "run")
    (folder / "flows.parquet").write_bytes(b"not parquet")
    with pytest.raises(RunError, match="damaged"):
        Run.load(folder)
    with pytest.raises(ScenarioError, match="not a run's folder"):
        Run.load(tmp_path)


def test_free_folders_are_numbered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folders.free("demo") == Path("runs/demo")
    (tmp_path / "runs/demo").mkdir(parents=True)
    (tmp_path / "runs/demo-2").mkdir()
    assert folders.free("demo") == Path("runs/demo-3")


def test_drop_reasons_become_columns(made_up):
    ports = made_up.ports
    assert {"scheme", "seed", "port", "drops_full", "drops_early"} <= set(ports.columns)
    assert ports.select(pl.col("drops_full") + pl.col("drops_early")).to_series().to_list() == (
        ports["drops"].to_list()
    )


def test_a_class_of_sizes_has_the_flows_between_its_bounds(made_up):
    sizes = [1_000, 20_000, 20_001, 1_000_000, None]
    rows = [{"traffic": "web", "bytes": size} for size in sizes]
    rows.append({"traffic": "mice", "bytes": 1_000})
    document = made_up.summary["scenario"] | {
        "measure": {"sizes": {"medium": "1 MB", "small": "20 kB"}}
    }
    run = replace(
        made_up, flows=pl.DataFrame(rows), summary=made_up.summary | {"scenario": document}
    )
    assert run.members("web/small")["bytes"].to_list() == [1_000, 20_000]
    assert run.members("web/medium")["bytes"].to_list() == [20_001, 1_000_000]
    assert run.members("web").height == 5
    assert run.members("web/huge").is_empty()


def test_a_folder_with_brackets_in_its_name_is_no_pattern(made_up, tmp_path):
    loaded = Run.load(made_up.save(tmp_path / "run[1]"))
    assert_frame_equal(loaded.flows, made_up.flows)


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127])
def test_a_folder_may_have_as_long_a_name_as_the_system_takes(made_up, tmp_path, name):
    assert Run.load(made_up.save(tmp_path / name)).info == made_up.info
