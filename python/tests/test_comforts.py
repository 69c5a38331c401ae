# SPDX-License-Identifier: Apache-2.0
"""`init`, `open`, and tables as CSV and Markdown."""

import csv
import io
import json
import os
import re
from urllib.parse import unquote_to_bytes, urlsplit

import pytest

from penstock import api
from penstock.cli import init
from penstock.errors import ScenarioError
from penstock.show import index_page, plain

from .conftest import make_run
from .test_cli import penstock


def test_init_takes_answers_from_a_pipe_and_asks_again(tmp_path):
    file = tmp_path / "mine.toml"
    answers = "ten\n1 Gb/s\n\n4\n10 kB\nmany\n0\n"
    done = penstock("init", file, stdin=answers)
    assert done.stdout.endswith(f"Wrote {file}; next: penstock run {file}\n")
    assert done.stdout.count("links?") == 2
    assert '  "ten" is not a number with a unit; allowed units: ' in done.stderr
    assert "  many: give a whole number, such as 8\n" in done.stderr
    document = api.validate(file)
    assert document["title"] == "4 answers of 10 kB at 1 Gb/s"
    assert document["fabric"]["bottleneck"]["buffer"] == "256 kB"
    assert list(document["traffic"]) == ["answers"]
    again = penstock("init", file, stdin=answers, code=2)
    assert "exists already" in again.stderr


def test_init_without_an_answer_to_each_question_writes_nothing(tmp_path):
    file = tmp_path / "mine.toml"
    done = penstock("init", file, stdin="1 Gb/s\n", code=2)
    assert 'penstock: no answer to "How much can the switch buffer' in done.stderr
    assert not file.exists()


def test_the_answers_of_those_who_press_enter_run():
    defaults = {question.key: question.default for question in init.QUESTIONS}
    text = init.text_of(defaults | {"flows": "3", "long": "1"})
    assert 'from = "senders[3..4]"' in text
    for bad in ({"flows": "0"}, {"long": "x"}, {"rate": '1"'}):
        with pytest.raises(ScenarioError, match="give a"):
            init.text_of(defaults | bad)


def test_the_index_lists_folders_with_links_to_their_pages(tmp_path):
    make_run().save(tmp_path / "runs/one <b>", report=True)
    make_run().save(tmp_path / "runs/lab/two")
    text = index_page.write(tmp_path / "runs").read_text(encoding="utf-8")
    assert 'href="one%20%3Cb%3E/report.html"' in text
    assert "lab/two" in text
    assert "lab/two/report.html" not in text, "it has no page"
    assert text.count("Made up &lt;of&gt; numbers") == 2
    assert "2 folders of results" in text


def test_open_prints_the_page_and_writes_one_that_is_missing(tmp_path):
    folder = make_run().save(tmp_path / "runs/one")
    done = penstock("open", folder, "--print")
    assert done.stdout.strip() == str(folder / "report.html")
    assert (folder / "report.html").is_file()
    assert penstock("open", tmp_path / "runs", "--print").stdout.endswith("index.html\n")
    assert "no such folder" in penstock("open", tmp_path / "no", code=2).stderr


def test_open_writes_no_page_into_folders_of_others(tmp_path):
    assert "no folder of results in it" in penstock("open", tmp_path, code=2).stderr
    assert not [*tmp_path.iterdir()]
    make_run().save(tmp_path / "one")
    (tmp_path / "index.html").write_text("mine")
    assert "is not a list of results" in penstock("open", tmp_path, code=2).stderr
    assert (tmp_path / "index.html").read_text() == "mine"


def test_scenarios_are_listed_in_order_and_by_a_word():
    listed = penstock("scenarios", "clients of a closed").stdout
    assert re.findall(r"clients-\d+ ", listed) == [
        "clients-8 ",
        "clients-16 ",
        "clients-32 ",
        "clients-64 ",
    ]
    assert not re.search(r"^\w+$", penstock("scenarios").stdout, re.M), "a group without a heading"
    assert "no scenario has this" in penstock("scenarios", "nope", code=2).stderr


def test_show_takes_schemes_and_scenarios(small):
    fairq = penstock("show", "fairq").stdout
    assert penstock("schemes", "fairq").stdout == fairq
    assert "scheme.fairq.window.alpha" in fairq
    shown = penstock("show", small).stdout
    assert "dumbbell: 16 hosts, 2 switches\n" in shown
    assert "The queue is measured at left->right." in shown
    layout = json.loads(penstock("show", small, "--json").stdout)["layout"]
    assert layout["switches"] == ["left", "right"]
    wrong = penstock("show", "farq", code=2).stderr
    assert (
        wrong
        == "penstock: farq: no such scheme, scenario file or template; did you mean 'fairq'?\n"
    )


def test_a_summary_is_csv_with_every_number_and_markdown_with_the_tables():
    summary = make_run(seeds=(1, 2)).summary
    rows = list(csv.DictReader(io.StringIO(plain.summary(summary, "csv"))))
    assert {row["scheme"] for row in rows} == {"drop-tail", "hcf"}
    (tail,) = (r for r in rows if (r["scheme"], r["number"]) == ("hcf", "mice.fct_s.max"))
    assert float(tail["value"]) == summary["results"][1]["groups"]["mice"]["fct_s"]["max"]
    assert float(tail["ci95"]) > 0
    (cut,) = (r for r in rows if (r["scheme"], r["number"]) == ("hcf", "mice.fct_s.p99"))
    assert (cut["value"], cut["ci95"], cut["unfinished"]) == ("", "", "True")
    text = plain.summary(summary, "md")
    assert re.search(r"^\| scheme \| finished \| FCT mean", text, re.M)
    assert re.search(r"^\| --- \| ---: \|", text, re.M)


def test_commands_print_csv_and_markdown(small, tmp_path):
    done = penstock("run", small, "--format", "csv", "--scheme", "fairq")
    assert done.stdout.startswith("scheme,number,value,ci95,unfinished\nfairq,")
    assert not (tmp_path / "runs").exists()
    listed = penstock("schemes", "--format", "md").stdout
    assert listed.startswith("| name | title | source |\n| --- | --- | --- |\n| drop-tail |")
    run = make_run(seeds=(1, 2)).save(tmp_path / "run")
    compared = penstock("compare", run, run, "--format", "csv").stdout
    first = next(csv.DictReader(io.StringIO(compared)))
    assert (first["agrees"], first["significant"]) == ("True", "False")
    assert json.loads(penstock("compare", run, run, "--json").stdout)["significant"] == 0


def test_links_of_the_index_lead_to_folders_of_any_name(tmp_path):
    names = {"50 % #1? [x] ü": "50 % #1? [x] ü", os.fsdecode(b"no \xff"): "no \ufffd"}
    for name in names:
        make_run().save(tmp_path / name, report=True)
    text = index_page.write(tmp_path).read_text(encoding="utf-8")
    links = re.findall(r'<a href="([^"]*)">', text)
    paths = [tmp_path / os.fsdecode(unquote_to_bytes(urlsplit(link).path)) for link in links]
    assert len(paths) == 2
    assert all(path.is_file() for path in paths)
    assert all(f">{shown}</a>" in text for shown in names.values())


@pytest.mark.parametrize(
    "command", ["run {small}", "sweep {small} --over duration=1ms", "schemes", "scenarios"]
)
def test_two_forms_of_output_are_refused(command, small, tmp_path):
    words = command.format(small=small).split()
    error = penstock(*words, "--json", "--format", "csv", code=2, cwd=tmp_path).stderr
    assert error == "penstock: --format csv: --json prints JSON; leave one of the two out\n"
    assert list(tmp_path.iterdir()) == [small]


def test_a_report_that_is_called_index_is_no_list_of_results(tmp_path):
    run = make_run().save(tmp_path / "one")
    page = tmp_path / "index.html"
    penstock("report", run, "--out", page)
    before = page.read_bytes()
    assert "is not a list of results" in penstock("open", tmp_path, "--print", code=2).stderr
    assert page.read_bytes() == before
    page.unlink()
    for _ in range(2):
        assert penstock("open", tmp_path, "--print").stdout == f"{page}\n"
