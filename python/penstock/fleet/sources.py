# SPDX-License-Identifier: Apache-2.0
"""Metrics as text, from penstockd's endpoints and from files."""

import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.errors import RunError, ScenarioError

_ENDINGS = (".prom", ".txt", ".metrics")
_LONGEST = 64 << 20  # bytes of an answer
_AT_ONCE = 64  # endpoints


def collect(names: Sequence[str], timeout_s: float = 5) -> tuple[dict[str, str], list[str]]:
    """The metrics of each host, by its name, and one line for each endpoint that gave none.

    Args:
        names: files and folders of exported metrics, whose hosts are called as the files; and
            endpoints, as `http://node7:9468/metrics` or `node7:9468`.
        timeout_s: longest wait for an endpoint.

    Raises:
        ScenarioError: a file cannot be read, or nothing is named.
    """
    files = [file for name in names for file in _files(Path(name))]
    endpoints = [name for name in names if not Path(name).exists()]
    texts = {file.stem: _read(file) for file in files}
    failed = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for name, answer in zip(
            endpoints, pool.map(lambda name: _fetch(name, timeout_s), endpoints), strict=True
        ):
            if isinstance(answer, RunError):
                failed.append(str(answer))
            else:
                texts[_host(name)] = answer
    return texts, failed


def pause(names: Sequence[str], seconds: float) -> bool:
    """Waits between two readings, which files do not have; whether there is a second one."""
    if seconds <= 0 or all(Path(name).exists() for name in names):
        return False
    time.sleep(seconds)
    return True


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS)
        if not found:
            message = f"{path}: no metrics in it; files end with {', '.join(_ENDINGS)}"
            raise ScenarioError(message)
        return found
    return [path] if path.exists() else []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: {error}"
        raise ScenarioError(message) from None


def _url(name: str) -> str:
    return name if "://" in name else f"http://{name}/metrics"


def _host(name: str) -> str:
    return _url(name).split("://", 1)[1].split("/", 1)[0]


def _fetch(name: str, timeout_s: float) -> str | RunError:
    url = _url(name)
    if not url.startswith(("http://", "https://")):
        return RunError(f"{name}: no file, and no endpoint; name one as node7:9468")
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            text: str = answer.read(_LONGEST).decode("utf-8", errors="replace")
            return text
    except (OSError, ValueError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", error)
        return RunError(f"{name}: {getattr(reason, 'strerror', None) or reason}")
