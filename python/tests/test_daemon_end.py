# SPDX-License-Identifier: Apache-2.0
"""What the end of the daemon leaves: everything, or with --detach what was attached by hand."""

import pytest

from penstock.execution import build

from .host import Hosts, until


@pytest.mark.parametrize(("options", "left"), [([], ["e0", "m0"]), (["--detach"], ["m0"])])
def test_the_end_of_the_daemon(tmp_path, options, left):
    with Hosts(tmp_path, "host").made() as host:
        for name in ("e0", "m0"):
            host.call("host", "ip", "link", "add", name, "type", "veth", "peer", "name", f"p{name}")
            host.call("host", "ip", "link", "set", name, "up")
        folders = ["--pins", str(host.pins), "--locks", str(host.locks)]
        port = ["--scheme", "observe", "--buffer", "1 MB"]
        host.call("host", build.find(build.AGENT), "attach", "m0", *port, *folders)
        with host.daemon('[port."e*"]\nscheme = "fairq"\nbuffer = "1 MB"\n', *options):
            until(lambda: host.ports() == ["e0", "m0"])
        assert host.ports() == left
        host.call("host", build.find(build.AGENT), "detach", "--all", *folders)
        assert host.pinned() == []
