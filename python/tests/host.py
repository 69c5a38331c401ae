# SPDX-License-Identifier: Apache-2.0
"""Hosts as network namespaces, with penstockd on one of them, for tests of what calls it."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from penstock.execution import build


def run(*command, **options):
    """What a command printed; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def until(condition):
    """Waits for a condition, at most 30 s."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited 30 s"
        time.sleep(0.05)


class Hosts:
    """Namespaces by key, and folders for penstockd on the first of them."""

    def __init__(self, folder, *keys):
        self.folder = folder
        self.pins, self.locks = folder / "bpf" / "penstock", folder / "run"
        self.names = {key: f"test-{os.getpid()}-{key}" for key in keys}

    @contextlib.contextmanager
    def made(self):
        """Makes the namespaces and the bpffs, and removes them."""
        assert os.geteuid() == 0, "this test makes namespaces: run it as root"
        bpf = self.folder / "bpf"
        bpf.mkdir()
        with contextlib.ExitStack() as stack:
            run("mount", "-t", "bpf", "bpf", str(bpf))
            stack.callback(run, "umount", str(bpf))
            for name in self.names.values():
                run("ip", "netns", "add", name)
                stack.callback(run, "ip", "netns", "del", name)
            yield self

    def inside(self, key, *command):
        """A command as it runs in a namespace."""
        return ["nsenter", f"--net=/run/netns/{self.names[key]}", *command]

    def call(self, key, *command, **options):
        """What a command printed in a namespace; it must succeed."""
        return run(*self.inside(key, *command), **options)

    def pinned(self):
        """The links to the hooks of all ports."""
        return [path.name for path in self._links()]

    def ports(self):
        """The names of attached ports."""
        return sorted(path.parent.name for path in self._links() if path.name == "link_egress")

    def _links(self):
        # os.walk passes over a folder that is removed meanwhile, where Path.glob raises.
        walked = os.walk(self.folder / "bpf")
        files = (Path(folder, name) for folder, _, names in walked for name in names)
        return [path for path in files if path.name.startswith("link_")]

    @contextlib.contextmanager
    def daemon(self, configuration="", *options):
        """Runs penstockd on the first host while the block runs."""
        config = self.folder / "penstockd.toml"
        agent = f"[agent]\npins = '{self.pins}'\nlocks = '{self.locks}'\n"
        config.write_text(agent + configuration, "utf-8")
        first = next(iter(self.names))
        program = [build.find(build.AGENT), "run", "--config", str(config), *options]
        command = self.inside(first, *program)
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: list(self.locks.glob("*.daemon")))
                yield
            finally:
                process.terminate()
