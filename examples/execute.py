# SPDX-License-Identifier: Apache-2.0
"""Executes the notebooks of this folder and writes their output: `execute.py [--check] [NAME ...]`.

What a cell prints, and the value of its last line, are its output, as in Jupyter; a figure becomes
a PNG. It needs nothing but what Penstock needs.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def execute(notebook: dict[str, Any], name: str) -> None:
    """Executes all cells of a notebook in one namespace; their outputs are replaced."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["outputs"] = list(_outputs("".join(cell["source"]), namespace, f"{name}[{count}]"))


def _outputs(source: str, namespace: dict[str, Any], place: str) -> Any:  # noqa: ANN401
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), namespace)
    if text := printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
    if value is not None:
        yield {"output_type": "display_data", "metadata": {}, "data": _data(value)}


def _data(value: Any) -> dict[str, Any]:  # noqa: ANN401 (the value of a cell)
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=80, metadata={"Software": None})
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return data


def main(arguments: list[str]) -> None:
    """Executes the notebooks that are named, or all of them."""
    names = [name for name in arguments if not name.startswith("-")]
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            execute(notebook, path.stem)
        if "--check" not in arguments:
            text = json.dumps(notebook, indent=1, ensure_ascii=False)
            path.write_text(text + os.linesep, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
