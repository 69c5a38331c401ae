# SPDX-License-Identifier: Apache-2.0
"""Which module imports which: no circles, one direction, and imports at the top of a file."""

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import penstock
import penstock_papers

PACKAGES = [penstock, penstock_papers]
ROOT = Path(penstock.__file__).parents[1]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in (ROOT / package.__name__).rglob("*.py*")
    if path.suffix in (".py", ".pyi")
}


class Import(NamedTuple):
    module: str
    line: int
    is_in_function: bool


def modules_of(node, package):
    """The modules of ours that an import statement loads."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = node.module if not node.level else f"{package}.{node.module}"
        names = [f"{base}.{alias.name}" for alias in node.names]
        names = [name if name in FILES else base for name in names]
    return [name for name in names if name in FILES]


@cache
def imports_of(module):
    """All imports of a module, those in functions and for type checkers included."""
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    found = []

    def visit(node, is_in_function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = modules_of(node, module.rpartition(".")[0]) or [""]
            found.extend(Import(name, node.lineno, is_in_function) for name in names)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, is_in_function or is_function)

    visit(tree, False)
    return found


def circle_in(graph):
    """A circle of a graph as its nodes, or None."""
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return error.args[1]
    return None


def test_no_module_imports_itself_by_way_of_others():
    graph = {m: {i.module for i in imports_of(m)} - {"", m} for m in FILES}
    assert sum(map(len, graph.values())) > 250, "the imports are no longer found"
    assert circle_in(graph) is None


def test_a_circle_would_be_found():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}}) is not None


def test_only_one_module_refers_to_the_papers():
    """It does so by name, so that Penstock works without them."""
    product = [module for module in FILES if module.split(".")[0] == "penstock"]
    assert not [m for m in product for i in imports_of(m) if i.module.startswith("penstock_papers")]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_map_of_a_package_is_true(package):
    """Its `__init__.py` lists the modules; each imports only those of lines above its own."""
    rows = re.findall(r"^    ((?:\w+/?(?:, )?)+)  +\S", package.__doc__, flags=re.M)
    level = {
        f"{package.__name__}.{name.rstrip('/')}": number
        for number, row in enumerate(rows)
        for name in row.split(", ")
    }
    top = {top_of(name) for name in FILES if name.startswith(f"{package.__name__}.")}
    assert top == set(level), "a module is missing in the map, or one in it is gone"
    wrong = defaultdict(set)
    for module in FILES:
        here = top_of(module)
        for imported in imports_of(module):
            there = top_of(imported.module)
            if here in level and there in level and here != there and level[there] >= level[here]:
                same_line = level[there] == level[here]
                wrong["same line" if same_line else "upward"].add((module, imported.module))
    assert not wrong


@pytest.mark.parametrize(
    "package", [name for name, path in FILES.items() if path.name == "__init__.py" and "." in name]
)
def test_the_map_of_a_package_below_has_its_modules(package):
    """Each begins a row, or is named in another's."""
    text = ast.get_docstring(ast.parse(FILES[package].read_text(encoding="utf-8")), clean=False)
    rows = re.findall(r"^ {0,4}((?:\w+/?, )*\w+/?)  +\S", text, flags=re.M)
    listed = {name.rstrip("/") for row in rows for name in row.split(", ")}
    below = {name.removeprefix(f"{package}.") for name in FILES if name.startswith(f"{package}.")}
    modules = {name.partition(".")[0] for name in below}
    assert listed <= modules, "one in the map is gone"
    assert modules <= listed | set(re.findall(r"`(\w+)`", text)), "a module is missing in the map"


def top_of(module):
    """The module or package directly below `penstock` or `penstock_papers`."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("module", sorted(FILES))
def test_an_import_in_a_function_has_its_reason(module):
    lines = FILES[module].read_text(encoding="utf-8").splitlines()
    bare = [
        f"{module}:{imported.line}"
        for imported in imports_of(module)
        if imported.is_in_function and "# start-up: " not in lines[imported.line - 1]
    ]
    assert not bare, "import at the top, or give the reason: `# start-up: what is slow`"


def test_no_clamp_depends_on_the_time_of_day():
    repository = ROOT.parent
    folders = ("bpf", "core", "crates/agent/src", "crates/controller/src", "crates/sdn/src")
    sources = [path for folder in folders for path in (repository / folder).rglob("*.[ch]")]
    sources += [path for folder in folders for path in (repository / folder).rglob("*.rs")]
    jumps = re.compile(r"SystemTime|ClockId::Realtime|CLOCK_REALTIME|ktime_get_(tai|real)")
    found = [str(path) for path in sources if jumps.search(path.read_text(encoding="utf-8"))]
    assert len(sources) > 100
    assert found == [], "the time of day jumps; a clamp would last, or end too soon"
