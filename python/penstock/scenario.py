# SPDX-License-Identifier: Apache-2.0
"""Scenarios as text: files, shipped templates and dicts, and their settings resolved.

The simulator's parser is the only one that knows the schema (`crates/scenario`); this module
finds the text, applies overrides, and returns the scenario with its defaults written out.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import tomli_w

from penstock import _native, papers
from penstock.errors import ScenarioError, suggestion

Scenario = str | Path | Mapping[str, Any]
"""A TOML file, the name of a shipped template, or a dict of the same shape."""
Overrides = Mapping[str, object] | Sequence[tuple[str, str]]
"""Values by dotted path, as `{"tcp.min_rto": "10 ms"}`."""
Settings = tuple[tuple[str, str], ...]
"""Overrides as the parser takes them: dotted path, value as TOML writes it."""

OPTIONS = {"schemes": "--scheme", "seeds": "--seeds"}
"""Keys that have options of their own."""
PARTS = ("queue", "window", "controller")
"""What a scheme consists of."""
_STDIN = Path("/dev/stdin")
TRACE_COLUMNS = ("start_s", "source", "destination", "bytes")


@dataclass(frozen=True)
class Source:
    """A scenario as text, before the simulator has read it."""

    text: str
    origin: Path
    """The file, for messages and for files named relative to it."""
    name: str
    """The name of its run folders."""


def templates_dir() -> Path:
    """The folder of the shipped scenarios; in a source tree a link to `scenarios/`."""
    return (Path(__file__).parent / "scenarios").resolve()


_EVIDENCE = {"bench": "speed", "crosscheck": "ns2", "calibration": "linux"}
"""Scenarios of a source tree: the first part of their names, and their folder in `evidence/`."""


def collections() -> dict[str, Path]:
    """Folders of scenarios by the first part of their names; the product's own have none."""
    root = templates_dir()
    evidence = {name: root.parent / "evidence" / folder for name, folder in _EVIDENCE.items()}
    folders = {"": root, "papers": papers.experiments(), **evidence}
    return {name: folder for name, folder in folders.items() if folder and folder.is_dir()}


def templates() -> Iterator[tuple[str, Path]]:
    """Name and file of each scenario: `demo`, `papers/sicc-4`, ... in order of names.

    Those in the folder `templates` are named without the folder.
    """
    named = {
        _template_name(Path(collection) / path.relative_to(folder)): path
        for collection, folder in collections().items()
        for path in folder.rglob("*.toml")
        if path.name != "claims.toml"
    }
    yield from sorted(named.items())


def _template_name(path: Path) -> str:
    stem = path.parent if path.name == "scenario.toml" else path.with_suffix("")
    return stem.as_posix().removeprefix("templates/")


def load(scenario: Scenario) -> Source:
    """Reads a scenario file, a shipped template by name, or a dict of the same shape.

    Raises:
        ScenarioError: no such file or template, or not readable.
    """
    if isinstance(scenario, Mapping):
        try:
            text = tomli_w.dumps(scenario)
            text.encode()
            return Source(text, Path("scenario"), "run")
        except UnicodeEncodeError as error:
            message = f"scenario: {error.object[error.start : error.end]!a}: is no UTF-8"
            raise ScenarioError(message) from None
        except (TypeError, ValueError) as error:
            cause = str(error).removesuffix(".")
            message = f"scenario: {cause}; allowed: texts, numbers, lists and dicts of these"
            raise ScenarioError(message) from None
    path, name = _find(str(scenario))
    if _is_pipe(path):
        return _piped(path)
    try:
        return Source(path.read_text(encoding="utf-8"), path, name)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        message = f"{path}: {reason}; give a scenario in TOML"
        raise ScenarioError(message) from error


def _is_pipe(path: Path) -> bool:
    return path == _STDIN or path.is_fifo()


@lru_cache(maxsize=8)
def _piped(path: Path) -> Source:
    """A scenario from a pipe, which can be read once only."""
    try:
        with open(0 if path == _STDIN else path, "rb", closefd=path != _STDIN) as pipe:
            return Source(pipe.read().decode(), Path("stdin"), "stdin")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        message = f"{path}: {reason}; give a scenario in TOML"
        raise ScenarioError(message) from error


def _find(name: str) -> tuple[Path, str]:
    if not name:
        message = "scenario: is an empty text; give a file, or the name of a template"
        raise ScenarioError(message)
    path = _STDIN if name == "-" else Path(name)
    if _is_pipe(path):
        return path, "stdin"
    if path.is_file():
        folder = path.parent.name.strip(".") if path.name == "scenario.toml" else ""
        return path, folder or path.stem
    known = dict(templates())
    if name in known:
        return known[name], name.rsplit("/", 1)[-1]
    if path.is_dir():
        inside = path / "scenario.toml"
        message = f"{name}: is a folder; give {inside if inside.is_file() else 'a scenario file'}"
        raise ScenarioError(message)
    if path.exists():
        message = f"{name}: is neither a file nor a pipe; give a scenario in TOML"
        raise ScenarioError(message)
    hint = suggestion(name, known, "see `penstock scenarios`")
    message = f"{name}: no such file, and no template of this name; {hint}"
    raise ScenarioError(message)


def parameters(part: str, kind: str | None) -> dict[str, dict[str, Any]]:
    """The parameters of a kind of queue, window or controller: by key, as the schema has them."""
    definitions = json.loads(_native.schema())["$defs"]
    for alternative in definitions[part.capitalize()]["anyOf"]:
        properties: dict[str, Any] = dict(alternative.get("properties", {}))
        if properties.pop("kind", {}).get("const") != kind:
            continue
        if reference := alternative.get("$ref"):
            properties |= definitions[reference.rpartition("/")[2]].get("properties", {})
        return properties
    return {}


def title(path: Path) -> str:
    """The title of a scenario file, or an empty string where it has none or is not TOML."""
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))
    except (OSError, ValueError):
        return ""


def trace_to_csv(path: Path) -> str:
    """A Parquet trace of flows as the CSV text that the simulator reads.

    Raises:
        ScenarioError: it cannot be read or lacks a column; the simulator prefixes the file.
    """
    if path.suffix != ".parquet":
        message = f"a trace is CSV or Parquet; '{path.suffix}' is neither"
        raise ScenarioError(message)
    import polars as pl  # start-up: a third of a second

    try:
        frame = pl.read_parquet(path, glob=False)  # a path may have brackets
        return frame.select(TRACE_COLUMNS).write_csv()
    except pl.exceptions.ColumnNotFoundError:
        message = f"needs the columns {', '.join(TRACE_COLUMNS)}; has {', '.join(frame.columns)}"
        raise ScenarioError(message) from None
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"cannot be read as Parquet ({str(error).partition(chr(10))[0]})"
        raise ScenarioError(message) from None


@lru_cache(maxsize=64)
def parsed(text: str) -> dict[str, Any]:
    """A resolved scenario as a dict; shared by all callers with the same text: do not change it."""
    return tomllib.loads(text)


def seeds_of(document: Mapping[str, Any]) -> list[int]:
    """The seeds of a resolved scenario, whose `seeds` is their number or a list."""
    seeds: int | list[int] = document["seeds"]
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds


def layout(text: str, origin: str) -> dict[str, Any]:
    """Hosts, switches and ports of a resolved scenario's fabric, and the ends of its traffic."""
    described: dict[str, Any] = json.loads(_native.layout(text, origin, trace_to_csv))
    return described


def measured_ports(text: str, origin: str) -> list[str]:
    """The ports of a resolved scenario that are measured, as `left->right`."""
    ports = layout(text, origin)["ports"]
    return [f"{port['from']}->{port['to']}" for port in ports if port["is_measured"]]


def settings_of(
    overrides: Overrides | None = None,
    schemes: Sequence[str] | None = None,
    seeds: int | Sequence[int] | None = None,
) -> Settings:
    """All overrides in the parser's form; `schemes` and `seeds` replace the scenario's own.

    Raises:
        ScenarioError: no seed is left.
    """
    items = overrides.items() if isinstance(overrides, Mapping) else overrides or ()
    pairs = [(str(key), _as_toml(key, value)) for key, value in items]
    if isinstance(schemes, str):
        schemes = [schemes]
    if schemes:
        pairs.append(("schemes", json.dumps(list(schemes))))
    if seeds is not None:
        if seeds == 0 or (not isinstance(seeds, int) and not seeds):
            message = "seeds: at least one is needed"
            raise ScenarioError(message)
        pairs.append(("seeds", json.dumps(seeds if isinstance(seeds, int) else list(seeds))))
    return tuple(pairs)


def _as_toml(key: object, value: object) -> str:
    """A value as TOML, of which JSON's numbers, texts and lists are a part.

    Raises:
        ScenarioError: it has no such form.
    """
    try:
        return value if isinstance(value, str) else _inline(value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        message = f"{key}: is of type {kind}; allowed: a number, a text, a list, a dict of these"
        raise ScenarioError(message) from None


def _inline(value: object) -> str:
    """A value in one line of TOML: of tables and lists their parts, of the rest what JSON has.

    Raises:
        TypeError: it, or a part, has no such form.
    """
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(key))} = {_inline(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value, ensure_ascii=False)


def resolve(source: Source, overrides: Settings) -> str:
    """The scenario in TOML, defaults written out, files by their full paths: it runs anywhere.

    Raises:
        ScenarioError: it cannot be used; one line.
    """
    origin = str(source.origin)
    for key, value in overrides:
        try:
            f"{key}{value}".encode()
        except UnicodeEncodeError:
            message = f"--set {key!a}, {value!a}: is no UTF-8"
            raise ScenarioError(message) from None
    try:
        return _native.validate(source.text, origin, list(overrides), trace_to_csv)
    except ScenarioError as error:
        error.source = source.text
        raise
