# SPDX-License-Identifier: Apache-2.0
"""The images of a release, run by runc with the rights that the chart gives; root runs this.

DIST is the folder of the release.
"""

import contextlib
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

import pytest
from host import run, until

DIST = Path(os.environ["DIST"])
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
NAMESPACE = f"test-image-{os.getpid()}"


def archive(name):
    (found,) = DIST.glob(f"{name}-[0-9]*-{ARCHITECTURE}.oci.tar")
    return found


class Image:
    """An image, unpacked as a bundle of the OCI runtime specification."""

    def __init__(self, name, folder):
        layout, self.bundle = folder / "layout", folder / "bundle"
        layout.mkdir()
        run("tar", "-xf", str(archive(name)), "-C", str(layout))
        index = json.loads((layout / "index.json").read_text("utf-8"))
        (manifest,) = index["manifests"]
        tag = manifest["annotations"]["org.opencontainers.image.ref.name"]
        run("umoci", "unpack", "--image", f"{layout}:{tag}", str(self.bundle))

    def command(self, identifier, *arguments, change=None):
        """A command in a container without a terminal, with no powers."""
        path = self.bundle / "config.json"
        config = json.loads(path.read_text("utf-8"))
        process = config["process"]
        process |= {"terminal": False, "noNewPrivileges": True}
        if arguments:
            process["args"] = list(arguments)
        process["capabilities"] = {}
        config["root"]["readonly"] = True
        # No seccomp, as each runtime brings its own, and no cgroups: they are the machine's.
        linux = config["linux"]
        for key in ("seccomp", "resources", "cgroupsPath"):
            linux.pop(key, None)
        linux["namespaces"] = [one for one in linux["namespaces"] if one["type"] != "cgroup"]
        config["mounts"] = [one for one in config["mounts"] if one["type"] != "cgroup"]
        if change:
            change(config)
        path.write_text(json.dumps(config), "utf-8")
        return [
            "runc",
            "run",
            "--bundle",
            str(self.bundle),
            identifier,
        ]


@contextlib.contextmanager
def node(folder):
    """A namespace with two ports, and a bpffs."""
    bpf = folder / "bpf"
    bpf.mkdir()
    with contextlib.ExitStack() as stack:
        run("mount", "-t", "bpf", "bpf", str(bpf))
        stack.callback(run, "umount", str(bpf))
        run("ip", "netns", "add", NAMESPACE)
        stack.callback(run, "ip", "netns", "del", NAMESPACE)
        inside = ["ip", "-n", NAMESPACE, "link"]
        run(*inside, "add", "eth0", "type", "veth", "peer", "name", "lxc1")
        for name in ("lo", "eth0", "lxc1"):
            run(*inside, "set", name, "up")
        yield bpf


CONFIGURATION = """
[agent]
pins = '/sys/fs/bpf/penstock'
locks = '/run/penstock'
[metrics]
listen = "0.0.0.0:9468"
allow_remote = true
[port.eth0]
scheme = "grant"
rate = "1 Gb/s"
buffer = "128 kB"
window = { side = "receiver" }
[port."lxc*"]
scheme = "observe"
buffer = "1 MB"
"""


def as_in_the_chart(folder, bpf):
    """Changes a container to what packaging/chart specifies."""
    (folder / "etc").mkdir()
    (folder / "locks").mkdir()
    (folder / "etc" / "penstockd.toml").write_text(CONFIGURATION, "utf-8")

    def change(config):
        powers = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"]
        kinds = ("bounding", "effective", "permitted")
        config["process"]["capabilities"] = dict.fromkeys(kinds, powers)
        for space in config["linux"]["namespaces"]:
            if space["type"] == "network":
                space["path"] = f"/run/netns/{NAMESPACE}"
        binds = {
            "/etc/penstock": (folder / "etc", "ro"),
            "/sys/fs/bpf": (bpf, "rw"),
            "/run/penstock": (folder / "locks", "rw"),
        }
        config["mounts"] = [
            mount for mount in config["mounts"] if mount["destination"] != "/run/penstock"
        ]
        config["mounts"] += [
            {"destination": to, "source": str(of), "type": "none", "options": ["rbind", mode]}
            for to, (of, mode) in binds.items()
        ]

    return change


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="penstock-image-") as name:
        yield Path(name)


def test_the_agents_image_is_its_program_and_licences(folder):
    image = Image("penstockd", folder)
    root = image.bundle / "rootfs"
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    texts = ["LICENSES/Apache-2.0.txt", "LICENSES/BSD-2-Clause.txt", "LICENSES/GPL-2.0-only.txt"]
    texts += ["copyright", "third-party.txt.gz"]
    assert files == ["usr/sbin/penstockd", *(f"usr/share/doc/penstockd/{name}" for name in texts)]


def test_the_agent_serves_a_node_and_leaves_nothing(folder):
    image = Image("penstockd", folder)
    with node(folder) as bpf:
        change = as_in_the_chart(folder, bpf)
        arguments = ["/usr/sbin/penstockd", "run", "--config", "/etc/penstock/penstockd.toml"]
        command = image.command(NAMESPACE, *arguments, "--detach", change=change)
        with subprocess.Popen(command) as process:
            try:
                until(lambda: len(list(bpf.glob("*/*/*/link_egress"))) == 2)
                fetch = "http://127.0.0.1:9468/metrics"
                page = run("ip", "netns", "exec", NAMESPACE, "curl", "-sSf", fetch)
                assert 'penstock_acting{interface="eth0",scheme="grant"} 1.0' in page
                execute = ["runc", "exec", NAMESPACE, "/usr/sbin/penstockd", "status", "--json"]
                ports = json.loads(run(*execute, "--for", "0 s"))
                assert {port["scheme"] for port in ports} == {"grant", "observe"}
            finally:
                run("runc", "kill", NAMESPACE, "TERM")
            assert process.wait(60) == 0
        assert not (bpf / "penstock").exists(), "nothing stays pinned"
        filters = run(
            "ip", "netns", "exec", NAMESPACE, "tc", "filter", "show", "dev", "eth0", "ingress"
        )
        assert "penstock" not in filters


def writable(config):
    """Changes a container, so that users can write their runs."""
    config["root"]["readonly"] = False


def test_the_simulators_image_runs_simulations_and_notebooks(folder):
    image = Image("penstock", folder)

    def at_once(*arguments):
        return run(*image.command(NAMESPACE, *arguments, change=writable))

    at_once("penstock", "run", "demo", "--seeds", "1", "--out", "runs/demo")
    written = image.bundle / "rootfs" / "home" / "penstock" / "runs" / "demo"
    assert (written / "report.html").stat().st_uid == 1000
    for notebook in sorted(Path("examples").glob("*.ipynb")):
        execute = ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace"]
        at_once(*execute, f"examples/{notebook.name}")


def without_token(config):
    """Changes a container, so that its page needs no login."""
    writable(config)
    config["process"]["args"].append("--IdentityProvider.token=")


def test_the_simulators_image_serves_jupyterlab(folder):
    """The page, too: without its assets it is an error of status 200."""
    image = Image("penstock", folder)
    with subprocess.Popen(image.command(NAMESPACE, change=without_token)) as process:
        try:
            fetch = (
                "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8888/lab').read())"
            )
            ask = ["runc", "exec", NAMESPACE, "python3", "-c", fetch]
            wanted = b"<title>JupyterLab</title>"
            until(lambda: wanted in subprocess.run(ask, capture_output=True, check=False).stdout)
        finally:
            run("runc", "kill", "--all", NAMESPACE, "KILL")
        process.wait(60)
