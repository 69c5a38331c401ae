# SPDX-License-Identifier: Apache-2.0
import tomllib
from pathlib import Path

import pytest

import penstock_papers
from penstock import ScenarioError, scenario


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    for name in (
        "scenarios/demo.toml",
        "scenarios/templates/leaf-spine.toml",
        "evidence/speed/tree.toml",
        "papers/sicc-4/scenario.toml",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'title = "{name}"\n')
    (tmp_path / "papers/sicc-4/claims.toml").touch()
    monkeypatch.setattr(scenario, "templates_dir", lambda: tmp_path / "scenarios")
    monkeypatch.setattr(penstock_papers, "experiments_dir", lambda: tmp_path / "papers")


@pytest.mark.usefixtures("shipped")
def test_templates_go_by_short_names():
    names = [name for name, _ in scenario.templates()]
    assert names == ["bench/tree", "demo", "leaf-spine", "papers/sicc-4"]
    assert scenario.load("papers/sicc-4").name == "sicc-4"
    assert scenario.load("leaf-spine").name == "leaf-spine"


@pytest.mark.usefixtures("shipped")
def test_a_misspelt_name_gets_the_nearest():
    with pytest.raises(ScenarioError, match=r"papers/sicc4: no such file.*'papers/sicc-4'\?"):
        scenario.load("papers/sicc4")


@pytest.mark.usefixtures("shipped")
def test_a_file_goes_before_a_template(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("demo").write_text('title = "mine"')
    assert scenario.load("demo").text == 'title = "mine"'


def test_a_scenario_in_the_folder_at_hand_has_a_name(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    Path(tmp_path / "scenario.toml").write_text('title = "mine"')
    names = {}
    for folder, path in (
        (".", "scenario.toml"),
        (".", "./scenario.toml"),
        ("inner", "../scenario.toml"),
    ):
        monkeypatch.chdir(tmp_path / folder)
        names[path] = scenario.load(path).name
    assert set(names.values()) == {"scenario"}, names
    assert scenario.load(tmp_path / "scenario.toml").name == tmp_path.name


def test_a_dict_becomes_toml():
    document = {"title": 'a "b"', "tcp": {"sack": True}, "traffic": {"mice": {"flows": 3}}}
    assert tomllib.loads(scenario.load(document).text) == document


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        scenario.load(path)
    with pytest.raises(ScenarioError, match="is a folder"):
        scenario.load(tmp_path)


def test_the_demo_is_shipped():
    assert "demo" in dict(scenario.templates())
    assert scenario.title(dict(scenario.templates())["demo"])
