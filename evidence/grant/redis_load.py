# SPDX-License-Identifier: Apache-2.0
"""Redis and its own benchmark in the laboratory: 8 clients ask 8 servers for values of 11.5 kB."""

import csv
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import mean

from penstock.api import prepare
from penstock.execution.lab import executor, fabric, programs, system

HOSTS = 8
PORT, VALUE_BYTES, REQUESTS = "6379", 11_500, 8000


def play(scheme: str, clients: int) -> list[float]:
    """Plays it under a scheme.

    Returns requests a second; mean, p50 and p99 in milliseconds; drops and timeouts.
    """
    (task,) = prepare("grant/persistent", schemes=[scheme], on="lab").tasks
    setup = executor.Setup.of(task)
    pairs = [(f"sender{number}", f"receiver{number}") for number in range(1, HOSTS + 1)]

    def inside(host: str, *command: str) -> list[str]:
        return system.inside(setup.plan.name(host, tag), *command)

    def total(host: str, name: str) -> int:
        return int(system.call(inside(host, "nstat", "-asz", name)).split()[-2])

    with system.locked(), fabric.built(setup.plan) as tag, ExitStack() as stack:
        executor._set_queues(setup, tag)
        stack.enter_context(executor._schemes(setup, tag))

        def start(host: str, *command: str) -> tuple[programs.Process, Path]:
            log = system.STATE / f"{command[0]}-{host}.log"
            started = programs.running(inside(host, *command), command[0], log)
            return stack.enter_context(started), log

        asking = []
        for server, client in pairs:
            address = setup.plan.home[server].hosts[server]
            quiet = ("--save", "", "--protected-mode", "no", "--port", PORT)
            start(server, "redis-server", *quiet)
            to = ("redis-benchmark", "-h", address, "-p", PORT, "-d", str(VALUE_BYTES))
            asking.append((client, *to, "-c", str(clients // HOSTS), "--csv"))
        time.sleep(1)
        for client, *command in asking:
            system.call(inside(client, *command, "-t", "set", "-n", "1"))
        each = str(REQUESTS // HOSTS)
        running = [start(client, *command, "-t", "get", "-n", each) for client, *command in asking]
        while not all(process.has_ended() for process, _ in running):
            time.sleep(0.1)
        reports = []
        for process, log in running:
            process.check_success()
            reports += [row for row in csv.DictReader(log.open()) if row["test"] == "GET"]
        port = next(port for port in setup.plan.protected if port.name == "left->right")
        queue = system.call(inside(port.node, "tc", "-s", "qdisc", "show", "dev", port.interface))
        dropped = queue.partition("dropped ")[2].partition(",")[0]
        timeouts = sum(total(server, "TcpExtTCPTimeouts") for server, _ in pairs)
    times = [
        mean(float(report[f"{key}_latency_ms"]) for report in reports)
        for key in ("avg", "p50", "p99")
    ]
    return [sum(float(report["rps"]) for report in reports), *times, int(dropped), timeouts]
