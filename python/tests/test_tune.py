# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import re
import shutil
import signal
import tomllib

import pytest

import penstock
from penstock import _native, cli, metric_names, scenario
from penstock.cli.report import redraw
from penstock.errors import InterruptedRunError
from penstock.searches import constraints, deploy, space, tuning, verdict
from penstock.searches.trial import Goal

ASKED = (
    "--scheme",
    "fairq",
    "--minimize",
    "mice.fct.mean",
    "--subject-to",
    "elephants.goodput>=0.9",
)
SOME = ("--trials", "6", "--seeds", "2")


@pytest.fixture
def tune(small, tmp_path, monkeypatch, capsys):
    """`tune(OPTION...)` is the command: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuning, "CHECK_SEEDS", 3)

    def run(*options):
        monkeypatch.setattr("sys.argv", ["penstock", "tune", str(small), *options])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def tuned(small, tmp_path, monkeypatch):
    """`tuned(FOLDER, trials=...)` searches without a page, and gives the trials."""
    monkeypatch.setattr(tuning, "CHECK_SEEDS", 2)

    def search(folder, **options):
        asked = {"subject_to": ["elephants.goodput>=0.9"], "seeds": 1, **options}
        done = tuning.tune(small, "fairq", "mice.fct.p99", out=tmp_path / folder, **asked)
        return done.attempts

    return search


def trials(folder):
    return json.loads((folder / "tune.json").read_text())["trials"]


def test_what_is_found_is_checked_and_can_be_used(tune, tmp_path, small):
    code, out, _ = tune(*ASKED, *SOME, "--json", "--out", "one")
    found = json.loads(out)
    assert code == 0
    assert found["feasible"]
    assert found["check"]["seeds"] == [3, 4, 5]
    assert len(found["trials"]) == 6

    feasible = [one for one in found["trials"] if max(one["excess"]) <= 0]
    assert found["best"]["objective"] == min(one["objective"] for one in feasible)
    assert {one["objective"] for one in found["trials"]} != {found["best"]["objective"]}

    document = tomllib.loads(small.read_text()) | tomllib.loads(found["scheme_toml"])
    document |= {"schemes": ["fairq-tuned"], "seeds": found["check"]["seeds"]}
    again = penstock.run(document).summary["results"][0]
    tuned = found["check"]["variants"]["fairq (tuned)"]
    assert again["groups"]["mice"]["fct_s"]["mean"] == pytest.approx(tuned[0]["mean"])
    assert again["groups"]["elephants"]["goodput_bps"]["mean"] == pytest.approx(tuned[1]["mean"])

    port = tomllib.loads(found["agent_toml"])["port"]["eth1"]
    values = {f"scheme.fairq.window.{key}": value for key, value in port["window"].items()}
    assert port["scheme"] == "fairq"
    assert values == found["best"]["values"]
    assert (tmp_path / "one/report.html").is_file()


def test_the_text_states_what_was_found(tune):
    code, out, _ = tune(*ASKED, *SOME, "--out", "one")
    assert code == 0
    assert "beat the defaults of fairq" in out.lower().replace("beats", "beat")
    assert "Keeps elephants.goodput>=0.9" in out
    assert "[scheme.fairq-tuned]" in out
    assert "[port.eth1]" in out


def test_a_seed_decides_the_search(tuned):
    one, same, other = (
        tuned(name, trials=6, seed=seed) for name, seed in zip("abc", (1, 1, 2), strict=True)
    )
    assert one == same
    assert one != other


def test_a_search_goes_on_where_it_stopped(tuned):
    first = tuned("parts", trials=4)
    whole = tuned("whole", trials=12)
    assert tuned("parts", trials=12) == whole
    assert whole[:4] == first


def test_an_interrupted_search_keeps_its_trials(tuned, monkeypatch):
    simulated, calls = tuning._computed, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:  # the references, four trials, then Ctrl-C
            raise KeyboardInterrupt
        return simulated(*arguments)

    monkeypatch.setattr(tuning, "_computed", interrupted)
    with pytest.raises(InterruptedRunError):
        tuned("parts", trials=8)
    parts = tuned("parts", trials=8)
    assert len(calls) == 6  # references, the other four, the check
    whole = tuned("whole", trials=8)
    assert [one.values for one in parts] == [one.values for one in whole]


def test_a_search_that_was_interrupted_at_once_begins_with_the_defaults(tuned, monkeypatch):
    simulated, calls = tuning._computed, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:  # the references, then Ctrl-C
            raise KeyboardInterrupt
        return simulated(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_computed", interrupted)
        with pytest.raises(InterruptedRunError):
            tuned("parts", trials=4)
    parts, whole = tuned("parts", trials=4), tuned("whole", trials=4)
    assert [one.values for one in parts] == [one.values for one in whole]


def test_one_search_at_a_time_works_on_a_folder(tune, tmp_path):
    asked = (*ASKED, "--trials", "1", "--seeds", "1", "--out", "one")
    assert tune(*asked)[0] == 0
    with (tmp_path / "one/.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = tune(*asked)
    assert (code, err.count("\n")) == (1, 1)
    assert "another search is at work there" in err
    assert tune(*asked)[0] == 0


def test_what_a_file_holds_is_part_of_the_question(tune, tmp_path, small):
    small.write_text(small.read_text().replace('"10 kB"', '"sizes.cdf"'))
    asked = (*ASKED, "--trials", "1", "--seeds", "1", "--out", "one")
    for largest, code in ((10_000, 0), (10_000, 0), (20_000, 2)):
        (tmp_path / "sizes.cdf").write_text(f"9000 0\n{largest} 1\n")
        found, _, err = tune(*asked)
        assert found == code
    assert "one: holds another search" in err


def test_another_question_needs_another_folder(tune):
    tune(*ASKED, "--trials", "1", "--seeds", "1", "--out", "one")
    code, _, err = tune(*ASKED, "--trials", "1", "--seeds", "2", "--out", "one")
    assert code == 2
    assert "one: holds another search" in err


def test_where_nothing_is_feasible_the_nearest_is_shown(tune, tmp_path):
    asked = ("--scheme", "fairq", "--minimize", "mice.fct.p99", "--subject-to", "mice.fct.p99<=1us")
    code, out, err = tune(*asked, "--trials", "3", "--seeds", "1", "--out", "none")
    assert code == 1
    assert "No trial of 3 keeps all constraints." in out
    assert re.search(r"The nearest, trial \d, misses mice.fct.p99<=1us by \d+", out)
    assert "no trial keeps all constraints" in err
    assert "[scheme." not in out
    page = (tmp_path / "none/report.html").read_text()
    assert "fairq, 3 trials of\n1 seed to minimize" in page
    assert "How the search went" in page


def test_values_that_do_not_go_together_do_not_end_the_search(tune, tmp_path):
    thresholds = [
        option
        for key in ("alpha1", "alpha2")
        for option in ("--param", f"scheme.hscc.window.{key}=0.02..0.9")
    ]
    asked = ("--scheme", "hscc", "--minimize", "mice.fct.p99", *thresholds)
    assert tune(*asked, "--trials", "8", "--seeds", "1", "--out", "one")[0] == 0
    errors = [one["error"] for one in trials(tmp_path / "one") if one["error"]]
    assert 0 < len(errors) < 8
    assert all("alpha1" in error for error in errors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--minimize", "mice.fct.p98"), "did you mean 'mice.fct.p9"),
        (("--minimize", "mouse.fct.p99"), "did you mean 'mice.fct.p9"),
        (("--subject-to", "elephants.goodput=3"), "give NUMBER>=VALUE"),
        (("--subject-to", "elephants.goodput>=3ms"), "'ms' is no unit of elephants.goodput"),
        (("--param", "scheme.fairq.window.alpha"), "give KEY=LOW..HIGH"),
        (("--param", "scheme.fairq.window.alpha=0.5..0.1"), "the lower end must be below"),
        (("--param", "scheme.fairq.window.alpha=0..1 log"), "above 0"),
        (("--param", "scheme.fairq.window.alhpa=0.1..0.2"), 'did you mean "alpha"?'),
        (("--param", "scheme.fairq.window.alpha=0.1.2..0.5"), "give LOW..HIGH"),
        (("--param", "tcp.min_rto=0_..1ms"), "give LOW..HIGH"),
        (("--subject-to", "elephants.goodput>=1.2.3"), "'.3' is no unit"),
        (("--param", "scheme.fairq.window.interval=1d..2d"), "unknown unit 'd'"),
        (("--subject-to", "mice.fct.p99<=1e400ms"), "1e400 is too large"),
        (("--param", "seeds=1..2"), "--param seeds: is not searched; give --seeds"),
        (("--set", "seeds=[1,2]"), "--set seeds: is not set by it here; give --seeds"),
        (("--set", 'schemes=["red"]'), "--set schemes: is not set by it here; give --scheme"),
        (("--scheme", "drop-tail"), "drop-tail: no parameters to search"),
        (("--scheme", "fairk"), "fairq"),
        (("--baseline", "nosuch"), "--baseline nosuch: no such scheme"),
    ],
)
def test_a_question_that_cannot_be_asked_is_an_error_of_a_line(tune, options, message):
    asked = {"--scheme": "fairq", "--minimize": "mice.fct.p99", options[0]: options[1]}
    code, _, err = tune(
        *(part for pair in asked.items() for part in pair), "--trials", "1", "--seeds", "1"
    )
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_the_page_is_drawn_again_from_the_folder_alone(tune, tmp_path):
    tune(*ASKED, *SOME, "--param", "scheme.fairq.window.alpha=0.05..0.5", "--out", "one")
    first = (tmp_path / "one/report.html").read_text()
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    for name in ("report.html", "tune.journal"):
        (tmp_path / "copy" / name).unlink()
    assert redraw(tmp_path / "copy").read_text() == first
    redraw(tmp_path / "copy", pdf=True)
    for name in ("history", "slice-alpha"):
        assert (tmp_path / f"copy/figures/{name}.svg").is_file()


def test_what_the_scenario_changes_is_deployed_too():
    own = {"scheme.fairq.window.floor": 3, "scheme.fairq.window.rounds_down": True}
    found = {"scheme.fairq.window.alpha": 0.3}
    text = penstock.api.resolved("demo", overrides={"schemes": ["fairq"], **own, **found})
    port = tomllib.loads(deploy.agent_lines(text, "fairq", found))["port"]["eth1"]
    assert port == {"scheme": "fairq", "window": {"alpha": 0.3, "floor": 3, "rounds_down": True}}


@pytest.mark.parametrize(
    ("scheme", "is_deployed"), [("hcf", True), ("sicc", False), ("red", False)]
)
def test_only_what_a_port_can_hold_is_deployed(scheme, is_deployed):
    text = penstock.api.resolved("demo", overrides={"schemes": [scheme]})
    assert bool(deploy.agent_lines(text, scheme, {})) == is_deployed


SUMMARY = {
    "groups": {
        "mice": {"flows": 200, "finished": 197, "timeouts": 5, "fct_s": None},
        "elephants": {"flows": 2, "finished": 0, "goodput_bps": {"mean": 4e7}},
    },
    "ports": {"a->b": {"drops": 7}},
}
SUMMARY["groups"]["mice"]["fct_s"] = {"mean": 0.01, "p95": 0.02, "p99": 0.03, "max": 0.1}
SUMMARY["groups"]["mice"]["jobs"] = {"begun": 95, "finished": 94, "unfinished": 6} | {
    "time_s": {"mean": 0.1, "p90": 0.2, "p99": 0.3}
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mice.fct.mean", None),
        ("mice.fct.max", None),
        ("mice.fct.p99", None),
        ("mice.fct.p95", 0.02),
        ("mice.jobs.time", None),
        ("mice.jobs.time.p99", None),
        ("mice.jobs.time.p90", 0.2),
        ("mice.jobs.finished", 94),
        ("mice.timeouts", 5),
        ("elephants.goodput", 4e7),
    ],
)
def test_flows_and_jobs_that_did_not_finish_count(name, expected):
    assert constraints.value(metric_names.find(name, SUMMARY), SUMMARY) == expected


@pytest.mark.parametrize(
    ("text", "number", "baseline", "excess"),
    [
        ("elephants.goodput>=0.95", 3.8e7, 4e7, 0.0),
        ("elephants.goodput>=0.95", 1.9e7, 4e7, 0.5),
        ("elephants.goodput>=20Mb/s", 4e7, None, -1.0),
        ("mice.fct.p95<=20 ms", 0.03, None, 0.5),
        ("mice.fct.p95<=0.5", 0.01, 0.04, -0.5),
        ("bottleneck.drops<=10abs", 15, 1000, 0.5),
        ("bottleneck.drops<=0", 3, 1000, 3),
        ("mice.fct.p95<=20ms", None, None, constraints.MISSING),
    ],
)
def test_a_constraint_is_missed_by_a_share(text, number, baseline, excess):
    assert constraints.constraint(text, SUMMARY).excess(number, baseline) == pytest.approx(excess)


def test_a_share_of_what_the_baseline_does_not_have_is_refused(tune, small):
    short = small.read_text().replace('"100 ms"', '"6 ms"').replace('"10 kB"', '"2 MB"')
    small.write_text(short)
    asked = ("--scheme", "fairq", "--minimize", "elephants.goodput")
    code, _, err = tune(*asked, "--subject-to", "mice.fct.max<=0.5", "--trials", "1")
    assert code == 2
    assert "drop-tail has no such number" in err


@pytest.mark.parametrize(
    ("tuned", "defaults", "is_better"),
    [
        ([1.0, 1.1, 0.9], [2.0, 2.2, 1.9], True),
        ([1.0, 2.1, 0.9], [1.1, 2.0, 1.0], False),
        ([2.0, 2.1, 2.2], [1.0, 1.1, 1.2], False),
        ([1.0, 1.0, 1.0], [1.0, None, 1.0], True),
        ([1.0, None, 1.0], [1.0, 1.0, 1.0], False),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], False),
    ],
)
def test_better_is_beyond_the_noise_of_the_differences(tuned, defaults, is_better):
    def summary(p95):
        group = {"flows": 1, "finished": 0 if p95 is None else 1, "fct_s": {"p95": p95}}
        return {"groups": {"mice": group}, "ports": {}}

    field = metric_names.find("mice.fct.p95", summary(1.0))
    found = {"a": [summary(1.0)] * 3, "b": [*map(summary, defaults)], "c": [*map(summary, tuned)]}
    check = verdict.judged(found, Goal(field, (), ()), [1, 2, 3])
    assert check.is_better == is_better


def test_seeds_that_differ_by_rounding_alone_have_no_interval():
    sample = {"groups": {"mice": {"flows": 1, "finished": 1, "fct_s": {"p95": 0.3}}}, "ports": {}}
    field = metric_names.find("mice.fct.p95", sample)
    others = [sample, {**sample, "groups": {"mice": {**sample["groups"]["mice"]}}}]
    others[1]["groups"]["mice"]["fct_s"] = {"p95": 0.1 + 0.2}
    found = {"a": others, "b": others, "c": others}
    check = verdict.judged(found, Goal(field, (), ()), [1, 2])
    assert check.variants["c"][0].text == "300 ms"


@pytest.mark.parametrize(
    ("text", "number", "value"),
    [
        ("0.05..0.5", 0.123456, 0.123),
        ("1..64 log", 7.0, 7),
        ("10us..1ms log", 91_110.0, "91.1 us"),
        ("10 µs..1 ms", 91_110.0, "91.1 us"),
        ("1Gb/s..5 Tb/s log", 2.5e9, "2500000000 b/s"),
        ("10 us..1 ms", 1e6, "1 ms"),
        ("500B..9kB", 1500.0, "1500 B"),
        ("1..16packets", 4.0, "4 packets"),
    ],
)
def test_a_number_of_the_search_as_a_scenario_has_it(text, number, value):
    one = space.parameter("some.key", text)
    assert one.value(number) == value
    assert one.number(value) == pytest.approx(number, rel=0.01)
    assert one.number("none of that") is None
    assert one.number(1e12) is None


@pytest.mark.parametrize("scheme", [one["name"] for one in penstock.schemes()])
def test_the_usual_ranges_are_of_values_that_a_scenario_takes(scheme):
    demo = tomllib.loads(_native.validate(*_demo()))
    parts = next(one for one in penstock.schemes() if one["name"] == scheme)
    if {parts[part]["kind"] for part in ("queue", "window", "controller")} <= {"drop-tail", "none"}:
        with pytest.raises(penstock.ScenarioError, match="no parameters to search"):
            space.usual(scheme, parts)
        return
    found = space.usual(scheme, parts)
    for end in ("low", "high"):
        values = {one.key: one.value(getattr(one, end)) for one in found}
        penstock.validate({**demo, "schemes": [scheme]}, overrides=values)


def _demo():
    source = scenario.load("demo")
    return source.text, str(source.origin), [], scenario.trace_to_csv


def test_a_time_of_zero_has_a_unit():
    assert space.parameter("tcp.min_rto", "0ms..5ms").value(0.0) == "0 ns"


@pytest.mark.parametrize(
    ("text", "ends"),
    [("0.5B..9.5B log", (1, 9)), ("1.5packets..3packets", (2, 3)), ("0.5us..2us", (500, 2000))],
)
def test_a_range_of_whole_numbers_has_whole_ends_within_it(text, ends):
    made = space.parameter("some.key", text)
    assert (made.low, made.high) == ends


@pytest.mark.parametrize("text", ["0.2B..0.9B", "0B..0.5B log", "1..1e9", f"1..{10**19}"])
def test_a_range_without_two_numbers_is_refused(text):
    with pytest.raises(penstock.ScenarioError, match="--param some"):
        space.parameter("some.key", text)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_name_what_is_kept(number, tune, monkeypatch):
    def interrupted(*_):
        signal.raise_signal(number)

    monkeypatch.setattr(tuning, "_computed", interrupted)
    code, out, err = tune(*ASKED, "--trials", "1", "--out", "one")
    assert (code, out) == (128 + number, "")
    assert err == (
        "penstock: interrupted; finished trials kept in one; the same command goes on from there\n"
    )


def test_what_every_seed_keeps_exactly_is_sure():
    def summary(timeouts):
        group = {"flows": 1, "finished": 1, "timeouts": timeouts, "fct_s": {"p95": 0.1}}
        return {"groups": {"mice": group}, "ports": {}}

    sample = summary(0)
    none = constraints.constraint("mice.timeouts<=0abs", sample)
    goal = Goal(metric_names.find("mice.fct.p95", sample), (none,), (0.0,))
    for counts, expected in (([0, 0, 0], (True, True)), ([0, 0, 2], (False, False))):
        variants = {name: [*map(summary, counts)] for name in "abc"}
        (kept,) = verdict.judged(variants, goal, [1, 2, 3]).kept
        assert (kept.is_kept, kept.is_sure) == expected


def test_a_search_takes_any_seed(tuned):
    assert tuned("large", trials=1, seed=10**20)


def test_parameters_of_one_last_name_have_figures_of_their_own(tune, tmp_path):
    ranges = ("--param", "traffic.mice.flows=5..6", "--param", "traffic.elephants.flows=1..2")
    assert tune(*ASKED, *ranges, "--trials", "2", "--seeds", "1", "--out", "one")[0] in (0, 1)
    redraw(tmp_path / "one", pdf=True)
    figures = {path.stem for path in (tmp_path / "one/figures").glob("slice-*.svg")}
    assert figures == {"slice-flows", "slice-flows-2"}


def test_a_number_of_a_port_needs_its_name_where_several_are_measured():
    for asked in (("bottleneck.drops", []), ("search.fct", ["bottleneck.drops<=1"])):
        with pytest.raises(penstock.ScenarioError, match="there is no single measured port"):
            penstock.tune("websearch", "fairq", asked[0], subject_to=asked[1])


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("mice.missed_deadlines", "mice.missed_deadlines: no such number."),
        (
            "elephants.fct.p99",
            "elephants.fct.p99: the unfinished flows exceed what it allows by 99.0 % of all.",
        ),
    ],
)
def test_why_there_is_no_number_to_minimize(tune, tmp_path, number, reason):
    asked = ("--scheme", "fairq", "--minimize", number)
    code, out, err = tune(*asked, "--trials", "1", "--seeds", "1", "--out", "none")
    assert code == 1
    assert f"no trial has {number}; search more" in err
    assert "How the search went" not in (tmp_path / "none/report.html").read_text()
    assert f"The nearest, trial 0, misses {reason}" in " ".join(out.split())
