# SPDX-License-Identifier: Apache-2.0
"""Metrics as text, from penstockd's endpoints and from files."""

import time
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

from penstock.errors import RunError, ScenarioError

_ENDINGS = (".prom", ".txt", ".metrics")
_PART = 1 << 16  # bytes that are read at once
_PARTS = 1 << 14  # of an answer; most are as small as a segment
_AT_ONCE = 64  # endpoints


@dataclass(frozen=True)
class _Source:
    """Where the metrics of a host come from."""

    host: str
    """As pages call it."""
    machine: str
    """Its name without a port."""
    name: str
    """As in messages."""
    path: Path | None = None
    """None: an endpoint."""


def collect(names: Sequence[str], timeout_s: float = 5) -> tuple[dict[str, str], list[str]]:
    """The metrics of each host, by its name, and one line for each source that gave none.

    Args:
        names: files and folders of exported metrics, whose hosts are called as the files; and
            endpoints, as `http://node7:9468/metrics` or `node7:9468`.
        timeout_s: longest wait for an endpoint.

    Raises:
        ScenarioError: a host is in two of the sources, so that its ports would count twice.
    """
    sources, failed = _sources(names)
    texts: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda source: _answer(source, timeout_s), sources)
        for source, answer in zip(sources, answers, strict=True):
            reading = answer if isinstance(answer, RunError) else _last_reading(source, answer)
            if isinstance(reading, RunError):
                failed.append(str(reading))
            else:
                texts[source.host] = reading
    return texts, failed


def _sources(names: Sequence[str]) -> tuple[list[_Source], list[str]]:
    """All files and endpoints, each once, and one line for each folder without files."""
    sources: dict[object, _Source] = {}
    failed = []
    for name in names:
        path = Path(name)
        if not path.exists():
            sources.setdefault(_host(name), _Source(_host(name), machine(name), name))
            continue
        files = _files(path)
        if not files:
            failed.append(f"{name}: no metrics in it; files end with {', '.join(_ENDINGS)}")
        for file in files:
            sources[file.resolve()] = _Source(file.stem, file.stem, str(file), file)
    known: dict[str, _Source] = {}
    for source in sources.values():
        other = known.setdefault(source.machine, source)
        # Endpoints of a machine differ in their ports.
        if other is not source and (other.path or source.path):
            message = f"{source.machine} is in {other.name} and {source.name}; name one of them"
            raise ScenarioError(message)
    return list(sources.values()), failed


def machine(name: str) -> str:
    """The name of an endpoint's host, without its port."""
    try:
        return urlsplit(_url(name)).hostname or _host(name)
    except ValueError:  # an invalid address of IPv6
        return _host(name)


def again(names: Sequence[str], texts: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """A second reading of the hosts that gave a first one.

    Raises:
        ScenarioError: as of `collect`.
    """
    later, failed = collect(names)
    late = [f"{host}: answered the second reading alone" for host in later if host not in texts]
    return {host: text for host, text in later.items() if host in texts}, failed + late


def require_apart(groups: Sequence[Sequence[str]]) -> None:
    """A host cannot be compared with itself.

    Raises:
        ScenarioError: one is in two groups.
    """
    hosts = [host for group in groups for host in dict.fromkeys(map(_host, group))]
    for host in hosts:
        if hosts.count(host) > 1:
            message = f"{host} is in the canary and in its control; name it once"
            raise ScenarioError(message)


def require_endpoints(names: Sequence[str]) -> None:
    """Two readings differ only where the sources do.

    Raises:
        ScenarioError: one of them is a file.
    """
    for name in names:
        if Path(name).exists():
            message = f"{name}: a file has one reading, and --for compares two; name endpoints only"
            raise ScenarioError(message)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS)
    return [path]


def _answer(source: _Source, timeout_s: float) -> str | RunError:
    return _read(source.path) if source.path else _fetch(source.name, timeout_s)


def _read(path: Path) -> str | RunError:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        return RunError(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        return RunError(f"{path}: not text, so no metrics of penstockd")


def _last_reading(source: _Source, text: str) -> str | RunError:
    """The last whole reading of a text.

    penstockd ends each with `# EOF`; node_exporter, which adds metrics of its own, does not.
    """
    *whole, rest = text.split("# EOF")
    if whole:
        return whole[-1]
    samples = [line for line in rest.splitlines() if line and not line.startswith("#")]
    if not any(line.startswith("penstock_") for line in samples):
        return RunError(f"{source.name}: no metrics of penstockd")
    if rest.endswith("\n") and not all(line.startswith("penstock_") for line in samples):
        return rest
    return RunError(f"{source.name}: incomplete, as it does not end with # EOF; export it again")


def _url(name: str) -> str:
    return name if "://" in name else f"http://{name}/metrics"


def _host(name: str) -> str:
    return _url(name).split("://", 1)[1].split("/", 1)[0]


def _fetch(name: str, timeout_s: float) -> str | RunError:
    url = _url(name)
    if "://" not in name and "/" in name:
        return RunError(f"{name}: no such file or folder; an endpoint is named as node7:9468")
    if not url.startswith(("http://", "https://")):
        return RunError(f"{name}: no file, and no endpoint; name one as node7:9468")
    end = time.monotonic() + timeout_s
    parts: list[bytes] = []
    try:
        _ = urlsplit(url).port  # raises where sockets would take another port
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            while part := answer.read1(_PART):
                parts.append(part)
                if len(parts) > _PARTS:
                    return RunError(f"{name}: the answer is too long for metrics")
                if time.monotonic() > end:  # one that trickles
                    return RunError(f"{name}: no whole answer within {timeout_s:g} s")
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        text = getattr(reason, "strerror", None) or reason or "no HTTP"
        code = f"HTTP {error.code} " if isinstance(error, HTTPError) else ""
        return RunError(f"{name}: {code}{text}")
    return b"".join(parts).decode("utf-8", errors="replace")
