# SPDX-License-Identifier: Apache-2.0
"""The services of packages: how scripts switch them on and off, and what they read."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from penstock.execution import build

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
AGENT, HOOK, CONTROLLER = (
    f"{name}.service" for name in ("penstockd", "penstock-openvswitch", "penstock-controller")
)
IS_RUNNING = Path("/run/systemd/system").is_dir()


def calls(folder, script, *arguments, fails="none"):
    """The calls of systemctl by a script of the Debian package, and whether ports are detached."""
    log = folder / "log"
    for name in ("systemctl", "penstockd"):
        text = f'#!/bin/sh\necho "{name} $*" >>"{log}"\ncase $1 in {fails}) exit 1 ;; esac\n'
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)
    command = [str(PACKAGING / "debian" / script), *arguments]
    path = f"{folder}:{os.environ['PATH']}"
    subprocess.run(command, env=os.environ | {"PATH": path}, check=True)
    return log.read_text("utf-8").splitlines() if log.exists() else []


def test_the_agent_is_enabled_even_where_systemd_does_not_run(tmp_path):
    made = calls(tmp_path, "postinst", "configure", "")
    assert made[0] == f"systemctl enable {AGENT}"
    assert (f"systemctl start {AGENT}" in made) == IS_RUNNING


def test_an_upgrade_enables_nothing_and_restarts_what_runs(tmp_path):
    made = calls(tmp_path, "postinst", "configure", "0.1.0")
    restart = ["systemctl daemon-reload", f"systemctl try-restart {AGENT} {HOOK}"]
    assert made == (restart if IS_RUNNING else [])


@pytest.mark.parametrize("script", ["postinst", "penstock-controller.postinst"])
@pytest.mark.parametrize("before", ["", "0.1.0"])
def test_a_package_is_installed_though_its_service_is_masked_or_fails(tmp_path, script, before):
    calls(tmp_path, script, "configure", before, fails="enable | start | try-restart")


def test_services_restart_without_limit():
    for unit in PACKAGING.rglob("*.service"):
        text = unit.read_text("utf-8")
        assert "\nRestart=always\n" in text
        assert "\nStartLimitIntervalSec=0\n" in text, unit


def test_a_reload_is_the_daemons_answer_and_needs_no_other_package():
    lines = (PACKAGING / AGENT).read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("ExecReload=")] == [
        "ExecReload=/usr/sbin/penstockd reload"
    ]


@pytest.mark.parametrize(
    ("script", "units"),
    [("prerm", [HOOK, AGENT]), ("penstock-controller.prerm", [CONTROLLER])],
)
def test_a_removal_leaves_no_service_on(tmp_path, script, units):
    assert calls(tmp_path, script, "upgrade", "0.3.0") == []
    made = calls(tmp_path, script, "remove")
    assert made[0].replace(" --now", "") == " ".join(["systemctl disable", *units])
    assert ("--now" in made[0]) == IS_RUNNING
    detach = ["penstockd detach --all --config /etc/penstock/penstockd.toml"]
    assert made[1:] == (detach if AGENT in units else [])


def test_the_controller_is_not_enabled(tmp_path):
    assert not any(
        "enable" in call
        for call in calls(tmp_path, "penstock-controller.postinst", "configure", "")
    )


def test_rpm_switches_the_same_services():
    spec = (PACKAGING / "release" / "rpm.spec").read_text("utf-8")
    for units in (f"{HOOK} {AGENT}", CONTROLLER):
        assert f"systemctl disable --now {units}\n" in spec
    for units in (f"{AGENT} {HOOK}", CONTROLLER):
        assert f"systemctl try-restart {units}\n" in spec


def example():
    return (PACKAGING / "controller.toml").read_text("utf-8")


def test_the_controller_accepts_its_example(tmp_path):
    (tmp_path / "host1.key").write_bytes(bytes(32))
    path = tmp_path / "controller.toml"
    path.write_text(
        example().replace('"/etc/penstock/host1.key"', f'"{tmp_path}/host1.key"'), "utf-8"
    )
    command = [build.find(build.CONTROLLER), "check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_controllers_example_is_that_of_the_documentation():
    page = (ROOT / "docs" / "schemes" / "sicc.md").read_text("utf-8")
    block = page.partition("# controller.toml")[2].partition("\n")[2].partition("```")[0]
    assert tomllib.loads(block) == tomllib.loads(example())


def test_the_controllers_service_reads_what_the_example_names():
    unit = (PACKAGING / CONTROLLER).read_text("utf-8")
    assert "ExecStart=/usr/sbin/penstock-controller run /etc/penstock/controller.toml\n" in unit
    assert Path(tomllib.loads(example())["status"]).parent == Path("/run/penstock")
    assert "RuntimeDirectory=penstock\n" in unit
