# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from penstock.cli.report import redraw
from penstock.errors import ScenarioError
from penstock_papers import markdown_page, reproduction_document, small_svg

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2"><path d="M 1.2345 2"/></svg>'


def claim(experiment, number, holds, **more):
    return {
        "experiment": experiment,
        "id": f"{experiment}.{number}",
        "text": "a | claim",
        "where": "§1, Fig. 2",
        "published": 0.5,
        "measured": 1.0,
        "ci95": None,
        "against": 2.0,
        "against_ci95": None,
        "holds": holds,
        "within_noise": False,
        "run": "",
        "shown": "1.00 s vs 2.00 s",
        **more,
    }


def experiment(name, paper, held, judged, **more):
    return {
        "id": name,
        "paper": paper,
        "title": f"Title of {name}",
        "about": "The set-up.",
        "why": "",
        "shortened": "",
        "seeds": 3,
        "computed_s": 1.0,
        "runs": [name],
        "figures": [],
        "notes": [],
        "held": held,
        "judged": judged,
        **more,
    }


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "made"
    (made / "figures").mkdir(parents=True)
    figure = {"title": "Drawn", "where": "§1, Fig. 2", "meaning": "Left is fast."}
    for name, size in (("hcf-4", 0), ("hcf-5", small_svg.MOST_BYTES)):
        (made / f"figures/{name}.svg").write_text(SVG.replace("<path", " " * size + "<path"))
    (made / "figures/hcf-5.png").write_bytes(b"PNG")
    why = "**Cause.** It is `--set x=1`.\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    document = {
        "command": "penstock reproduce all",
        "date": "2026-11-21",
        "penstock": "0.1.0",
        "machine": {"system": "Linux", "processor": "CPU", "cores": 2},
        "substrate": "sim",
        "quick": False,
        "wall_s": 90.0,
        "held": 2,
        "judged": 3,
        "experiments": [
            experiment("sicc-5.4", "SICC", 1, 1, runs=[], seeds=0),
            experiment(
                "hcf-4", "HCF", 1, 2, why=why, figures=[{"file": "figures/hcf-4.svg", **figure}]
            ),
            experiment("hcf-5", "HCF", 0, 0, figures=[{"file": "figures/hcf-5.svg", **figure}]),
        ],
        "claims": [
            claim("sicc-5.4", "a", True),
            claim("hcf-4", "a", True, run="126", within_noise=True),
            claim("hcf-4", "b", False),
            claim("hcf-5", "a", None),
        ],
    }
    (made / reproduction_document.NAME).write_text(json.dumps(document))
    return made


def test_the_page_for_the_documentation(folder, tmp_path):
    page = markdown_page.write(folder, tmp_path / "docs/reproduction.md")
    text = page.read_text()
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# What reproduces, and why the rest does not",
        "## SICC",
        "### sicc-5.4",
        "## HCF",
        "### hcf-4",
        "### hcf-5",
    ]
    assert "**[Title of hcf-4](../papers/hcf-4/claims.toml).** The set-up." in text
    assert "**2 of 3 claims hold**, on 2026-11-21" in text
    assert "in 90.0 s on 2 cores (CPU): `penstock reproduce all`" in " ".join(text.split())
    assert "| [hcf-4](#hcf-4) | Title of hcf-4 | 3 | 1 of 2 |" in text
    assert "| [hcf-5](#hcf-5) | Title of hcf-5 | 3 | 0 of 0, 1 not judged |" in text
    assert "| [sicc-5.4](#sicc-54) | Title of sicc-5.4 | – | 1 of 1 |" in text
    row = "| §1, Fig. 2 | 0.5 | 1.00 s vs 2.00 s |"
    assert rf"| a \| claim (shown: 126) {row} holds, within the noise |" in text
    assert rf"| a \| claim {row} **does not hold** |" in text
    assert "![Drawn](papers/hcf-4.svg)\n\n*§1, Fig. 2: Drawn.* Left is fast." in text
    assert text.index("does not hold**") < text.index("hcf-4.svg") < text.index("**Cause.**")
    assert "Quick" not in text


def test_the_same_results_give_the_same_page(folder, tmp_path):
    first = markdown_page.write(folder, tmp_path / "a/page.md").read_text()
    assert markdown_page.write(folder, tmp_path / "b/page.md").read_text() == first
    assert markdown_page.write(folder, tmp_path / "a/page.md").read_text() == first


def test_figures_are_kept_small(folder, tmp_path):
    (tmp_path / "docs/papers").mkdir(parents=True)
    (tmp_path / "docs/papers/hcf-5.svg").write_text("of an earlier run")
    page = markdown_page.write(folder, tmp_path / "docs/page.md")
    assert sorted(path.name for path in (tmp_path / "docs/papers").iterdir()) == [
        "hcf-4.svg",
        "hcf-5.png",
    ]
    assert "M 1.2 2" in (tmp_path / "docs/papers/hcf-4.svg").read_text()
    assert "papers/hcf-5.png" in page.read_text()


def test_a_quick_page_is_marked_so(folder):
    document = reproduction_document.read(folder)
    document["quick"] = True
    document["experiments"][1]["shortened"] = "2 of 5 seeds"
    text = markdown_page.render(document, {"figures/hcf-4.svg": "x", "figures/hcf-5.svg": "y"})
    assert "**Quick: runs were shortened**" in text
    assert "Quick: 2 of 5 seeds." in text


def test_shares_of_set_ups_are_a_column_where_there_are_any(folder):
    document = reproduction_document.read(folder)
    drawn = {"figures/hcf-4.svg": "x", "figures/hcf-5.svg": "y"}
    (known, *_) = [one["id"] for one in document["claims"] if one["experiment"] == "hcf-4"]
    shares = {known: "robust: 95 % of 40", "hcf-4": "Open set-ups: 40."}
    text = markdown_page.render(document, drawn, shares)
    assert text.index("### hcf-4") < text.index("Open set-ups: 40.") < text.index("### hcf-5")
    assert text.count("| set-ups |") == 1
    assert "holds, within the noise | robust: 95 % of 40 |" in text
    assert "| **does not hold** |  |" in text


def test_the_report_is_drawn_again(folder, tmp_path):
    path = redraw(folder)
    assert path == folder / reproduction_document.PAGE
    text = path.read_text()
    for row in (
        "2 of 3 claims hold",
        'id="sicc-5.4"',
        'href="#hcf-4"',
        "a | claim (shown: 126)",
        "<b>does not hold</b>",
        "holds, within the noise",
        "not judged",
        "<b>Cause.</b> It is <code>--set x=1</code>.",
        "<pre>| a | b |",
        "Left is fast.",
    ):
        assert row in text
    assert text.partition("<script")[0].count("<svg") == 2
    assert "http" not in text.replace("http://www.w3.org", "")
    elsewhere = tmp_path / "else/page.html"
    redraw(folder, elsewhere)
    assert (tmp_path / "else/figures/hcf-4.svg").is_file()
    with pytest.raises(ScenarioError, match=r"reproduction\.json"):
        redraw(tmp_path)
