# SPDX-License-Identifier: Apache-2.0
"""The notebooks of `examples/` run, and hold the output that they had."""

import importlib.util
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def execute():
    """The program that executes them."""
    spec = importlib.util.spec_from_file_location("execute", EXAMPLES / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_three_and_the_page_lists_them():
    assert [path.stem for path in NOTEBOOKS] == ["incast", "jobs", "recorded"]
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in page for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kept = list(_outputs(notebook))
    monkeypatch.chdir(tmp_path)
    execute().execute(notebook, path.stem)
    assert list(_outputs(notebook)) == kept, "run examples/execute.py"


def _outputs(notebook):
    """The outputs of each cell; of pictures only that there are some."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["execution_count"], "it was never executed: run examples/execute.py"
            outputs = [output.get("data", output) for output in cell["outputs"]]
            yield [output | {"image/png": "image/png" in output} for output in outputs]
