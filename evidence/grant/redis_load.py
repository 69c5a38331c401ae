# SPDX-License-Identifier: Apache-2.0
"""Redis and its own benchmark in the laboratory: 8 clients ask 8 servers for values of 11.5 kB."""

import csv
import time
from statistics import mean

from hosts import COUNT, laboratory, wait

PORT, VALUE_BYTES, REQUESTS = "6379", 11_500, 8000


def play(scheme: str, clients: int) -> list[float]:
    """Plays it under a scheme.

    Returns mean, p50 and p99 in milliseconds; drops and timeouts.
    """
    with laboratory(scheme) as hosts:
        asking = []
        for server, client in hosts.pairs:
            quiet = ("--save", "", "--protected-mode", "no", "--port", PORT)
            hosts.start(server, "redis-server", *quiet)
            to = ("redis-benchmark", "-h", hosts.address(server), "-p", PORT)
            size = ("-d", str(VALUE_BYTES), "-c", str(clients // COUNT), "--csv")
            asking.append((client, *to, *size))
        time.sleep(1)
        for client, *command in asking:
            hosts.call(client, *command, "-t", "set", "-n", "1")
        each = str(REQUESTS // COUNT)
        running = [
            hosts.start(client, *command, "-t", "get", "-n", each) for client, *command in asking
        ]
        wait([process for process, _ in running])
        reports = []
        for _, log in running:
            reports += [row for row in csv.DictReader(log.open()) if row["test"] == "GET"]
        harm = hosts.harm()
    times = [
        mean(float(report[f"{key}_latency_ms"]) for report in reports)
        for key in ("avg", "p50", "p99")
    ]
    return [*times, *harm]
