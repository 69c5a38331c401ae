# SPDX-License-Identifier: Apache-2.0
"""What the tests share: a made-up run, and a scenario that takes milliseconds."""

import random
import signal

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from penstock import stats, tables
from penstock.execution import threads
from penstock.runs import Run

# On a loaded machine an example may take any time.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SMALL = """
title = "Six mice against two elephants"
duration = "100 ms"
schemes = ["drop-tail", "fairq"]

[fabric]
kind = "dumbbell"
senders = 8
receivers = 8
access = { rate = "1 Gb/s", delay = "10 us" }
bottleneck = { rate = "1 Gb/s", delay = "30 us", buffer = "100 packets" }

[tcp]
profile = "newreno-ns2"

[traffic.elephants]
kind = "bulk"
flows = 2
from = "senders[0..2]"
to = "receivers[0..2]"
start = "5 ms"

[traffic.mice]
kind = "incast"
flows = 6
size = "10 kB"
from = "senders[2..8]"
to = "receivers[2..8]"
start = "0 s"
"""


class Files(LoadFileScheduling):
    """One worker plays all tests of a file, and one all that want the machine's one laboratory."""

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return "the laboratory" if "/test_lab_" in file else file


def pytest_xdist_make_scheduler(config, log):
    return Files(config, log)


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_interrupts():
    """Background jobs of a shell ignore SIGINT, and so would the tests and their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture
def made_up():
    return make_run()


def make_run(schemes=("drop-tail", "hcf"), seeds=(1,), mice=30, samples=400):
    """A run as the simulator would give it, of invented numbers."""
    generator = random.Random(7)
    flows, queues, ports, results = [], [], [], []
    for scheme in schemes:
        by_seed = []
        for seed in seeds:
            times = [generator.lognormvariate(-6, 1) for _ in range(mice)]
            flows += [_flow(scheme, seed, "elephants", 0, None, generator.uniform(2e7, 4e7))]
            flows += [
                _flow(scheme, seed, "mice", number + 1, None if number == 0 else time, 8e4 / time)
                for number, time in enumerate(times)
            ]
            queues += [
                {"scheme": scheme, "seed": seed, "port": "a->b", "time_s": n / 1000}
                | {"bytes": generator.randrange(125_000), "packets": 3}
                for n in range(samples)
            ]
            port = _port(generator)
            ports.append((scheme, seed, {"a->b": port}))
            groups = {"elephants": _group(1, 0, None), "mice": _group(mice, mice - 1, times)}
            by_seed.append(
                {"groups": groups, "ports": {"a->b": port}, "performance": _performance()}
            )
        ci95 = stats.ci95_of([{k: s[k] for k in ("groups", "ports")} for s in by_seed])
        results.append(
            {"scheme": scheme, "tcp": "newreno", **stats.mean_of(by_seed)}
            | {"ci95": ci95 if len(seeds) > 1 else None}
        )
    document = {"title": "Made up <of> numbers", "duration": "1 s", "seeds": list(seeds)}
    document["traffic"] = {"mice": {"kind": "incast", "flows": mice, "size": "10 kB"}}
    keys = {**tables.KEYS}
    return Run(
        summary={"scenario": document, "seeds": list(seeds), "results": results},
        flows=tables.pl.DataFrame(flows, schema={**keys, **tables.FLOWS}),
        queues=tables.pl.DataFrame(queues, schema={**keys, **tables.QUEUES}),
        ports=tables.ports(ports),
        scenario='title = "Made up <of> numbers"\n',
        info={"name": "made-up", "penstock": "0", "command": "penstock run made-up"},
    )


def _flow(scheme, seed, traffic, number, time, goodput):
    return {
        "scheme": scheme,
        "seed": seed,
        "traffic": traffic,
        "flow": number,
        "source": "h0",
        "destination": "h1",
        "start_s": 0.0,
        "end_s": time,
        "delivered_bytes": 10_000,
        "fct_s": time,
        "goodput_bps": goodput,
        "missed_deadline": False,
    }


def _group(flows, finished, times):
    fct = None
    if times:
        quantiles = dict.fromkeys(("p50", "p90", "p95", "p99"), max(times))
        fct = {"mean": sum(times) / len(times), "sd": 0.0, **quantiles, "max": max(times)}
    return {
        "flows": flows,
        "finished": finished,
        "fct_s": fct,
        "missed_deadlines": 0,
        "goodput_bps": {"mean": 3e7, "min": 1e7, "max": 5e7},
        "jain": 0.9,
        "retransmits": 3,
        "timeouts": 1,
    }


def _port(generator):
    full = generator.randrange(10, 99)
    return {
        "drops": full + 2,
        "drops_by_reason": {"full": full, "early": 2},
        "utilization": 0.98,
        "queue_bytes": {"mean": 6e4, "p99": 1.2e5, "max": 1.25e5},
    }


def _performance():
    return {"wall_s": 0.1, "packet_hops": 10, "packet_hops_per_s": 100.0, "peak_rss_bytes": 1}


@pytest.fixture
def ran(monkeypatch):
    """The tasks that were simulated."""
    tasks, simulate = [], threads.simulate

    def counting(task, *args):
        tasks.append(task)
        return simulate(task, *args)

    monkeypatch.setattr(threads, "simulate", counting)
    return tasks
