# SPDX-License-Identifier: Apache-2.0
"""A striped read over HTTP in the laboratory: curl asks 8 nginx for all stripes of a block at once.

A read is done when its last stripe is there; the next one begins then, on new connections.
"""

import tempfile
import time
from pathlib import Path
from statistics import mean, median

from hosts import COUNT, laboratory

from penstock.execution.lab.tools import NGINX

STRIPE_BYTES, READS = 16_384, 60


def play(scheme: str, stripes: int) -> list[float]:
    """Plays it under a scheme.

    Returns mean, p50 and p99 in milliseconds; drops and timeouts.
    """
    times = []
    with tempfile.TemporaryDirectory() as name, laboratory(scheme) as hosts:
        folder = Path(name)
        (folder / "www").mkdir()
        (folder / "www/stripe").write_bytes(bytes(STRIPE_BYTES))
        for server, _ in hosts.pairs:
            of = {"folder": folder, "host": server, "address": hosts.address(server), "port": 80}
            file = folder / f"{server}.conf"
            file.write_text(NGINX.format(**of))
            hosts.start(server, "nginx", "-e", "stderr", "-p", name, "-c", str(file))
        time.sleep(1)
        urls = []
        for stripe in range(stripes):
            server, _ = hosts.pairs[stripe % COUNT]
            urls += ["-o", "/dev/null", f"http://{hosts.address(server)}/stripe?{stripe}"]
        at_once = ("--parallel", "--parallel-immediate", "--parallel-max", str(stripes))
        for _ in range(READS):
            ended = hosts.call(
                "receiver1", "curl", "-sS", "--fail", *at_once, "-w", "%{time_total}\n", *urls
            )
            times.append(1e3 * max(map(float, ended.split())))
        harm = hosts.harm()
    times.sort()
    p99 = times[int(0.99 * (len(times) - 1))]
    return [mean(times), median(times), p99, *harm]
