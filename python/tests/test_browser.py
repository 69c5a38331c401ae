# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: offline, on a desk and on a phone, light and dark."""

import json
import re
import shutil
from collections import namedtuple
from dataclasses import replace
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

import penstock
import penstock_papers
from penstock.cli.report import redraw
from penstock.comparisons import compare, comparison_page
from penstock.sweeps import means, sweep_page
from penstock_papers import reproduce as reproducing

from .conftest import SMALL, make_run
from .test_reproduce_figures import CLAIM, FIGURES

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")

Screen = namedtuple("Screen", "width height mobile")
SCREENS = {"desk": Screen(1280, 800, False), "phone": Screen(390, 844, True)}
MODES = ("light", "dark")

LONG = [
    "drop-tail, Linux, buffer 100 packets",
    "red, min 20, max 60 packets, weight 0.002",
    *(f"scheme-{n}" for n in range(14)),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not (program and driver):
        pytest.fail("no Chromium or no chromedriver: install them, as `make test` does", False)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for argument in (
        "--headless=new",
        "--no-sandbox",  # which root cannot have
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


# Charts follow the width of the page at the next frame, and what that moves at the one after.
DRAWN = """
const done = arguments[0];
const frames = (left) => (left ? requestAnimationFrame(() => frames(left - 1)) : done());
frames(3);
"""


def problems(browser, page):
    """What is wrong with a page: while it loads, and then on every screen in both modes."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())
    found = []
    for (name, screen), mode in product(SCREENS.items(), MODES):
        metrics = {**screen._asdict(), "deviceScaleFactor": 1}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        preference = {"name": "prefers-color-scheme", "value": mode}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
        browser.execute_async_script(DRAWN)
        problems = browser.execute_script(AUDIT, screen.width)
        found += [f"{name}, {mode}: {problem}" for problem in problems]
    found += [f"asked for {url}" for url in requests(browser) if url != page.as_uri()]
    levels = ("WARNING", "SEVERE")
    logged = [entry for entry in browser.get_log("browser") if entry["level"] in levels]
    return found + [f"console: {entry['message']}" for entry in logged]


def requests(browser):
    log = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event for event in log if event["method"] == "Network.requestWillBeSent"]
    urls = [
        event["params"]["request"]["url"]
        for event in sent
        if not event["params"]["documentURL"].startswith("chrome://")  # what it begins with
    ]
    assert urls, "the log has not even the page itself"
    return [url for url in urls if not url.startswith("data:")]


def usual():
    return make_run(schemes=("drop-tail", "red-ecn", "hcf"), seeds=(1, 2))


def run(folder):
    return usual().save(folder)


def recorded(folder):
    """With the packets of a port."""
    return penstock.run("demo", seeds=[1], schemes=["drop-tail", "fairq"]).save(folder)


def many_schemes(folder):
    return make_run(schemes=LONG).save(folder)


def one_scheme(folder):
    return make_run(schemes=("fairq",)).save(folder)


def odd_run(folder):
    """A title of another script, sizes as groups, one of them empty, flows that never end."""
    made = make_run()
    document = made.summary["scenario"] | {
        "title": "インキャスト — naïve façade, Überlast, 数十のフロー",
        "about": "word" * 60,
        "measure": {"sizes": {"small": "20 kB", "medium": "1 MB"}},
    }
    results = [
        result
        | {
            "groups": result["groups"]
            | {
                "mice/small": result["groups"]["mice"],
                "mice/medium": result["groups"]["mice"]
                | {"flows": 0, "finished": 0, "fct_s": None},
            }
        }
        for result in made.summary["results"]
    ]
    summary = made.summary | {"scenario": document, "results": results}
    flows = made.flows.with_columns(pl.lit(10_000, pl.Int64).alias("bytes"))
    return replace(made, summary=summary, flows=flows).save(folder)


def comparison(folder):
    first = usual().save(folder.with_name("simulated"))
    slow = usual()
    second = replace(slow, flows=slow.flows.with_columns(pl.col("fct_s") * 1.4))
    second.summary["results"][0]["groups"]["mice"]["fct_s"]["p50"] *= 2
    comparison_page.save(compare(first, second.save(folder.with_name("measured"))), folder)
    return folder


def reproduction(folder):
    """An experiment with each kind of figure, and what the test of its page makes up."""
    shipped = folder.parent / "shipped/papers/exp-1"
    shipped.mkdir(parents=True)
    (shipped / "scenario.toml").write_text(SMALL)
    (shipped / "claims.toml").write_text(FIGURES + CLAIM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(penstock_papers, "experiments_dir", lambda: folder.parent / "shipped/papers")
        patch.setattr(reproducing, "REPORTS", 0)
        return reproducing.reproduce(["exp-1"], quick=True, out=folder)[1]


def swept(folder, keys, points):
    schemes = ["drop-tail", "red-ecn", LONG[1]]
    cells = {
        (point, scheme): means.Cell(
            0.001 * (row + 1) ** 3, 0.0004, row == column == 1, (0.001 * (row + 1) ** 3,) * 3
        )
        for column, scheme in enumerate(schemes)
        for row, point in enumerate(points)
    }
    shown = means.Shown("mice.fct_s.p99", keys, points, schemes, cells, 3)
    asked = {"title": "Mice", "command": "penstock sweep", "penstock": "0"}
    return sweep_page.write(asked, [shown], folder / "report.html")


def sweep_of_one_key(folder):
    keys = {"traffic.mice.flows": "traffic.mice.flows"}
    return swept(folder, keys, [(2**n,) for n in range(3, 11)])


def sweep_of_two_keys(folder):
    keys = {"traffic.mice.size_bytes": "traffic.mice.size", "buffer": "fabric.bottleneck.buffer"}
    return swept(folder, keys, list(product((10_000, 20_000, 500_000, 1e6), ("20 kB", "1 MB"))))


def tuning(folder):
    key = "scheme.fairq.window.alpha"
    trials = [
        {
            "number": n,
            "values": {key: 0.1 * n + 0.1},
            "objective": None if n == 5 else 0.02 / (n + 1),
            "excess": [n % 3 - 1.0],
            "error": "it failed" if n == 5 else "",
        }
        for n in range(12)
    ]
    question = {
        "scheme": "fairq",
        "seeds": 3,
        "minimize": "mice.fct.p99",
        "subject_to": ["elephants.jain>=0.9"],
        "parameters": [{"key": key, "unit": "", "is_log": True}],
    }
    number = {"text": "1.23 ms ± 0.2 ms"}
    check = {
        "seeds": [4, 5, 6],
        "names": ["mice.fct.p99"],
        "variants": {"found": [number], "default": [number]},
    }
    kept = {
        "title": "Alpha",
        "command": "penstock tune",
        "penstock": "0",
        "unit": "s",
        "question": question,
        "trials": trials,
        "best": trials[6],
        "check": check,
        "sentences": ["Half as slow."],
        "scheme_toml": "[scheme.fairq]\n" + "x" * 200,
        "agent_toml": "",
    }
    folder.mkdir()
    (folder / "tune.json").write_text(json.dumps(kept), encoding="utf-8")
    return folder


PAGES = (
    run,
    recorded,
    many_schemes,
    one_scheme,
    odd_run,
    comparison,
    sweep_of_one_key,
    sweep_of_two_keys,
    reproduction,
    tuning,
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a kind, drawn once."""
    drawn = {}

    def of(make):
        if make not in drawn:
            made = make(tmp_path_factory.mktemp(make.__name__) / "folder")
            drawn[make] = redraw(made) if made.is_dir() else made
        return drawn[make]

    return of


@pytest.mark.parametrize("make", PAGES, ids=lambda make: make.__name__)
def test_a_page_is_well_everywhere(browser, page, make):
    found = problems(browser, page(make))
    assert not found, "\n".join(found)


BREAKAGES = {
    "a warning": (run, "</body>", "<script>console.warn('so')</script></body>", "console: "),
    "an error": (run, "</body>", "<script>throw 1</script></body>", "console: "),
    "a request": (
        *(run, "</body>", "<img src='http://a.invalid/b.png' alt='b'></body>"),
        "asked for http",
    ),
    "no language": (run, ' lang="en"', "", "lang: not set"),
    "no title": (run, "<title>.*?</title>", "<title></title>", "title: empty"),
    "no viewport": (run, '<meta name="viewport".*?>', "", "phone, light: viewport: "),
    "a wide page": (run, "overflow-x: auto;", "", "phone, light: overflow: "),
    "no heading": (run, "<h1>", "<h1 hidden></h1><h1>", "headings: one h1"),
    "a heading left out": (run, "<(/?)h2>", r"<\1h3>", "headings: 1,3"),
    "no figures": (run, "<(/?)figure(?=[ >])", r"<\1aside", "figures: none"),
    "no picture": (run, 'class="plot"', "", "figure 1: no picture"),
    "a hidden picture": (
        *(run, r"\.plot \{ clear: both; \}", ".plot { display: none; }"),
        "figure 1: not drawn",
    ),
    "a nameless picture": (run, 'aria-label="', 'data-label="', "figure 1: no accessible name"),
    "lines of no colour": (run, "ctx.stroke\\(\\);", "", ": empty"),
    "no data": (run, '"x": \\[[^]]*\\]', '"x": []', "figure 1: empty"),
    "a figure aside": (
        *(reproduction, "<figure>", "<figure style='margin-left: -2rem'>"),
        "figure 1: not within",
    ),
    "an empty drawing": (
        reproduction,
        r"figure > .scroll svg \{",
        "[clip-path]:not([style*='--grid']) { display: none; } figure > .scroll svg {",
        "figure 1: empty",
    ),
    "a broken image": (
        *(reproduction, "<svg role.*?</svg>", "<img alt='a' src='data:image/png,'>"),
        "figure 1: empty",
    ),
    "no sentence": (
        *(run, "(<figcaption>.*?<p>).*?</p>", r"\1</p>"),
        "figure 1: not explained",
    ),
    "two sentences": (
        *(run, r"</p>\s*</figcaption>", " It is.</p></figcaption>"),
        "figure 1: not explained",
    ),
    "labels on a heap": (
        *(reproduction, r"figure > .scroll svg \{", "text { transform: none; } svg {"),
        "overlap",
    ),
    "labels cut off": (
        *(reproduction, r"figure > .scroll svg \{", "text { translate: 0 40px; } svg {"),
        "is cut off",
    ),
    "a narrow cell": (run, "<td ", "<td style='max-width: 1rem' ", "is wider than its cell"),
    "small print": (run, "font-size: .8rem", "font-size: .7rem", "text: 11.2 pixels"),
    "a small figure": (
        *(reproduction, r"width: 100%; fill: (.*?);\s*min-width: .*?;", "width: 50%;"),
        "text: 6.",
    ),
    "pale text": (run, "--quiet: #6a7180", "--quiet: #8a91a0", "desk, light: contrast: 3."),
    "dark on dark": (run, "--ink: #e6e8ee", "--ink: #404652", "phone, dark: contrast: 1."),
    "labels on a bar": (
        reproduction,
        "(<svg role[^>]*>)",
        r"\1<path d='M0 0H999V999H0z' style='fill: #777777; opacity: .9'/>",
        "desk, light: contrast: ",
    ),
    "faint text": (run, "body {", "body { opacity: .6;", "contrast: "),
}


@pytest.mark.parametrize("broken", BREAKAGES)
def test_each_check_can_fail(browser, page, tmp_path, broken):
    make, wanted, instead, expected = BREAKAGES[broken]
    text, count = re.subn(wanted, instead, page(make).read_text("utf-8"), flags=re.DOTALL)
    assert count, "the page has nothing of the kind any more"
    (tmp_path / "broken.html").write_text(text, encoding="utf-8")
    found = problems(browser, tmp_path / "broken.html")
    assert any(expected in problem for problem in found), "\n".join(found)


@pytest.fixture
def opened(browser, page):
    """A run's page on a desk, and a function that runs a script in it."""
    metrics = {**SCREENS["desk"]._asdict(), "deviceScaleFactor": 1}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page(run).as_uri())
    drawn = "return window.penstock?.plots.length > 0 && penstock.plots.every((plot) => plot.u)"
    WebDriverWait(browser, 30).until(lambda shown: shown.execute_script(drawn))
    return browser


PLOT = "const at = (name) => penstock.plots.filter((plot) => plot.chart.name === name); "


def hover(browser, chart, share):
    """What the page shows while the pointer is on a chart, this far to the right."""
    return browser.execute_script(
        PLOT
        + """const over = at(arguments[0])[0].u.over;
        over.scrollIntoView({block: "center"});
        const box = over.getBoundingClientRect();
        const clientX = box.left + arguments[1] * box.width, clientY = box.top + 20;
        over.dispatchEvent(new PointerEvent("pointermove", {clientX, clientY, bubbles: true}));
        const tip = document.getElementById("tip").getBoundingClientRect();
        if (tip.left < 0 || tip.right > innerWidth) throw "out of sight";
        return document.getElementById("tip").innerText;""",
        *(chart, share),
    )


def test_a_pointer_shows_the_values_below_it(opened):
    shown = hover(opened, "fct-mice", 0.99)
    assert re.search(r"flow completion time\s+[\d.]+ m?s", shown)
    assert re.search(r"hcf\s+96\.67 % \(2 of 60 unfinished\)", shown), shown
    queue = hover(opened, "queue-a->b", 0.5)
    assert re.search(r"[\d.]+ kB \([\d.]+ kB to [\d.]+ kB\)", queue), queue


def test_a_click_on_a_scheme_isolates_it(opened):
    opened.execute_script("document.querySelector('.chip[data-scheme=hcf]').click()")
    shown = hover(opened, "fct-mice", 0.9)
    assert "hcf" in shown
    assert "drop-tail" not in shown
    hidden = (
        "return [...document.querySelectorAll('.plot .off, .bar.off')].map(e => e.dataset.scheme)"
    )
    assert set(opened.execute_script(hidden)) == {"drop-tail", "red-ecn"}
    opened.execute_script("document.querySelector('.chip[data-all]').click()")
    assert "drop-tail" in hover(opened, "fct-mice", 0.9)
    assert not opened.execute_script(hidden)


@pytest.mark.parametrize(
    ("least", "greatest", "ticks"),
    [
        (641e-6, 828e-6, [650, 700, 750, 800]),
        (90e-6, 700e-6, [100, 200, 300, 500, 700]),
        (0.9e-6, 110e-6, [1, 2, 5, 10, 20, 50, 100]),
        (1e-6, 1e-3, [1, 3, 10, 30, 100, 300, 1000]),
        (1e-6, 1, [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
    ],
)
def test_a_logarithmic_axis_has_round_ticks_however_far_one_zooms(opened, least, greatest, ticks):
    found = opened.execute_script("return penstock.logTicks(...arguments)", least, greatest)
    assert [1e6 * tick for tick in found] == pytest.approx(ticks)


def test_every_axis_of_numbers_has_two_labels_at_least(opened):
    labels = """
        const shown = (u, i) => (u.axes[i]._values ?? []).filter((text) => text).length;
        return penstock.plots.map(({ u, chart }) => [chart.name, shown(u, 0), shown(u, 1)]);"""
    strips = {"queue-a->b"}  # all but the last have no labels of time
    for name, x, y in opened.execute_script(labels):
        assert y >= 2, name
        assert x >= 2 or name in strips, name


def test_charts_of_one_axis_are_zoomed_together_and_back(opened):
    scale = (
        PLOT + "return at(arguments[0]).map((plot) => [plot.u.scales.x.min, plot.u.scales.x.max])"
    )
    before = opened.execute_script(scale, "queue-a->b")
    opened.execute_script(PLOT + "at('queue-a->b')[0].u.setScale('x', {min: 0.1, max: 0.2})")
    assert opened.execute_script(scale, "queue-a->b") == [[0.1, 0.2]] * 3
    button = opened.find_element("css selector", "[id='queue-a->b'] [data-do=reset]")
    button.click()
    assert opened.execute_script(scale, "queue-a->b") == before
    assert not button.is_displayed()


def test_tables_are_sorted_and_copied(opened):
    table = "const t = [...document.querySelectorAll('.tablebox')].at(-1); "
    names = table + "return [...t.querySelectorAll('tbody tr')].map((row) => row.dataset.scheme)"
    drops = (
        table + "return [...t.querySelectorAll('tbody td:nth-child(2)')].map(c => +c.dataset.value)"
    )
    opened.execute_script(table + "t.querySelectorAll('thead button')[1].click()")
    assert opened.execute_script(drops) == sorted(opened.execute_script(drops))
    opened.execute_script(table + "t.querySelectorAll('thead button')[0].click()")
    assert opened.execute_script(names) == ["drop-tail", "hcf", "red-ecn"]
    copied = opened.execute_async_script(
        table
        + """const done = arguments[0];
        const copied = [], writeText = async (text) => { copied.push(text); };
        Object.defineProperty(navigator, "clipboard", {value: {writeText}});
        t.querySelector("[data-do=csv]").click();
        t.querySelector("[data-do=latex]").click();
        setTimeout(() => done(copied));"""
    )
    assert copied[0].startswith("scheme,drops,utilization")
    assert re.search(r"^drop-tail,[\d.]+,0.98,", copied[0], re.M)
    assert copied[1].startswith("\\begin{tabular}{lrrrrr}\n\\toprule\nscheme & drops")
    assert "98.0 \\%" in copied[1]


def test_a_chart_is_saved_as_numbers_and_as_a_picture(opened):
    saved = opened.execute_async_script(
        PLOT
        + """const done = arguments[0], saved = [];
        HTMLAnchorElement.prototype.click = async function () {
          const blob = await (await fetch(this.href)).arrayBuffer();
          saved.push([this.download, String.fromCharCode(...new Uint8Array(blob).slice(0, 80))]);
          if (saved.length === 2) done(saved);
        };
        const figure = document.getElementById("fct-mice");
        figure.querySelector("[data-do=csv]").click();
        figure.querySelector("[data-do=png]").click();"""
    )
    texts = dict(saved)
    assert texts["fct-mice.csv"].startswith(
        "series,flow completion time (s),share of flows,low,high\n"
    )
    assert texts["fct-mice.png"][1:4] == "PNG"


@pytest.fixture
def recording(browser, page):
    """The page of a run with recorded packets, on a desk."""
    metrics = {**SCREENS["desk"]._asdict(), "deviceScaleFactor": 1}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page(recorded).as_uri())
    return browser


STATES = "return [...document.querySelectorAll('#replay .state')].map((each) => each.textContent)"


def test_a_burst_is_replayed_paused_and_wound(recording):
    replay = "return penstock.replay."
    recording.execute_script(f"{replay}at(0)")
    assert all("sent 0" in state for state in recording.execute_script(STATES))
    slider = "const s = document.querySelector('#replay input'); s.value = s.max; "
    recording.execute_script(slider + "s.dispatchEvent(new Event('input'))")
    states = recording.execute_script(STATES)
    drop_tail, fairq = (int(re.search(r"dropped (\d+)", state)[1]) for state in states)
    assert drop_tail > 5 * fairq
    button = recording.find_element("css selector", "#replay [data-do=play]")
    button.click()
    assert button.text == "Pause"
    recording.execute_async_script(DRAWN)
    assert recording.execute_script(f"{replay}isPlaying()")
    button.click()
    assert button.text == "Play"
    before = recording.execute_script(f"{replay}now()")
    recording.execute_async_script(DRAWN)
    assert recording.execute_script(f"{replay}now()") == before


def test_a_packet_of_the_replay_shows_whose_it_is(recording):
    shown = recording.execute_script(
        """penstock.replay.at(0.5);
        const canvas = document.querySelector("#replay canvas");
        canvas.scrollIntoView({block: "center"});
        const box = canvas.getBoundingClientRect();
        const clientX = box.left + 0.7 * box.width, clientY = box.top + 15;
        canvas.dispatchEvent(new PointerEvent("pointermove", {clientX, clientY, bubbles: true}));
        return document.getElementById("tip").innerText;"""
    )
    assert re.search(r"^(mice|elephants) \d+\s+sequence number \d+, \d+ B\s+[\d.]+ m?µ?s", shown)


LINES = PLOT + "return at('flow-windows')[0].panel.series.map((series) => series.name)"


def test_a_click_on_a_curve_shows_that_flow_over_time(recording):
    assert "congestion window" in recording.execute_script(LINES)
    label = """const [choice] = document.querySelector("#timeline select").selectedOptions;
        return document.querySelector("#timeline output").textContent || choice.textContent"""
    click = (
        PLOT
        + """
        const {u} = at("fct-mice")[0];
        u.over.scrollIntoView({block: "center"});
        const box = u.over.getBoundingClientRect();
        const fct = arguments[0], share = arguments[1];
        const clientX = box.left + u.valToPos(fct, "x"), clientY = box.top + u.valToPos(share, "y");
        const of = {clientX, clientY, bubbles: true};
        u.over.dispatchEvent(new PointerEvent("pointerdown", of));
        u.over.dispatchEvent(new MouseEvent("click", of));"""
    )
    curve = "return at('fct-mice')[0].panel.series.find((s) => s.name === arguments[0])"
    fairq = recording.execute_script(PLOT + curve, "fairq")
    middle = len(fairq["x"]) // 2
    recording.execute_script(click, fairq["x"][middle], fairq["y"][middle])
    shown = recording.execute_script(label)
    assert re.search(r"mice \d+ under fairq: [\d.]+ ms", shown), shown
    assert "window as rewritten" in recording.execute_script(LINES)
    drop_tail = recording.execute_script(PLOT + curve, "drop-tail")
    recording.execute_script(click, drop_tail["x"][-1], drop_tail["y"][-1])
    assert "under drop-tail" in recording.execute_script(label)
    recording.execute_script(
        """const choice = document.querySelector("#timeline select");
        choice.value = choice.options[1].value;
        choice.dispatchEvent(new Event("change"));"""
    )
    assert recording.execute_script(label).startswith("slowest: mice")
