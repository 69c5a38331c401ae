# SPDX-License-Identifier: Apache-2.0
"""Canaries: what is compared, when it stops by itself, and how seldom by chance."""

import contextlib
import json
import random
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import pytest

from penstock import RunError, ScenarioError
from penstock.cli import app
from penstock.fleet import canary
from penstock.fleet.canary import Canary, Interval

from .host import Hosts, until


def lines(labels, values):
    return "".join(f"penstock_{name}{{{labels}}} {value}\n" for name, value in values.items())


def flows(interface, **sides):
    """Metrics of a port with a canary: bytes, repeated bytes, timeouts, time of flows by side."""
    names = [
        f"canary_{n}_total" for n in ("egress_bytes", "repeated_bytes", "timeouts_seen", "flow_ms")
    ]
    port = f'interface="{interface}",scheme="fairq",side='
    return "".join(
        lines(f'{port}"{side}"', dict(zip(names, values, strict=True)))
        for side, values in sides.items()
    )


def test_both_sides_of_a_port_are_compared():
    before = flows("eth1", controlled=(0, 0, 0, 0), held_out=(0, 0, 0, 0))
    after = flows("eth1", controlled=(1e9, 1e8, 3, 9000), held_out=(2e9, 0, 2, 4000))
    read = [canary.of_flows({"a": text}) for text in (before, after)]
    interval = canary.between(*read, seconds=1, end_s=1)
    assert interval.canary == {"retransmits": 0.1, "timeouts": 3.0, "goodput": 8e8}
    assert interval.control == {"retransmits": 0.0, "timeouts": 1.0, "goodput": 4e9}
    assert canary.of_flows({"a": after}, "lxc*").is_empty()


def host(sent, repeated, buckets):
    port = 'interface="eth0",scheme="fairq"'
    values = {
        "egress_bytes_total": sent,
        "repeated_bytes_total": repeated,
        "timeouts_seen_total": 0,
    }
    text = lines(port, {**values, "flows": 4})
    for bound, count in buckets.items():
        text += lines(f'{port},le="{bound}"', {"queue_peak_bytes_bucket": count})
    return text


def test_hosts_are_compared_with_hosts():
    empty = {"1023.0": 0, "2047.0": 0, "+Inf": 0}
    full = {"1023.0": 98, "2047.0": 100, "+Inf": 100}
    before = {"a": host(0, 0, empty), "b": host(0, 0, empty)}
    after = {
        "a": host(1e9, 0, full),
        "b": host(1e9, 1e7, empty | {"1023.0": 7, "2047.0": 7, "+Inf": 7}),
    }
    control = {"c": host(5e8, 0, full)}
    read = [canary.of_hosts(texts, control) for texts in (before, after)]
    interval = canary.between(*read, seconds=2, end_s=2)
    assert interval.canary["goodput"] == pytest.approx(8 * 1.99e9 / 16)
    assert interval.canary["queue p99"] == pytest.approx(1023 + 1024 * 0.93 / 2)
    assert interval.control["goodput"] == 0
    # A port that was attached again counts from 0.
    restarted = canary.between(read[1], canary.of_hosts({"a": host(10, 0, empty)}, control), 1, 1)
    assert restarted.canary["goodput"] == pytest.approx(8 * 10 / 4)


def runs(worse, intervals, generator):
    made = Canary()
    for number in range(intervals):
        control = generator.lognormvariate(0, 0.3)
        value = generator.lognormvariate(0, 0.3) * worse
        made.intervals.append(Interval(number, {"goodput": value}, {"goodput": control}))
        if made.is_stop():
            return number + 1
    return None


def test_a_canary_that_is_worse_stops_and_one_that_is_not_seldom_does():
    generator = random.Random(3)
    stopped = [runs(0.5, 80, generator) for _ in range(40)]
    assert all(stopped), "half the goodput"
    assert min(stopped) >= 12
    alarms = sum(runs(0.9, 60, generator) is not None for _ in range(200))
    assert alarms <= 0.05 * 200, "as much worse as the margin allows"
    assert canary.is_shown(12, 12)
    assert not canary.is_shown(11, 11)
    assert not canary.is_shown(0, 0)


def test_a_difference_is_better_only_beyond_its_confidence():
    made = Canary()
    for number, gain in enumerate((1.3, 1.2, 1.4, 1.3)):
        made.intervals.append(Interval(number, {"goodput": gain}, {"goodput": 1.0}))
    (judged,) = made.judgements()
    assert judged.sentence == "better"
    made.intervals.append(Interval(9, {"goodput": 0.1}, {"goodput": 1.0}))
    assert made.judgements()[0].sentence == "no difference shown"


@pytest.fixture
def endpoint():
    """A port whose canary repeats a tenth of its bytes, more at each reading."""

    class Metrics(BaseHTTPRequestHandler):
        readings = 0

        def do_GET(self):
            Metrics.readings += 1
            n = Metrics.readings
            sides = {
                "controlled": (n * 1e8, n * 1e7, 0, n * 1e3),
                "held_out": (n * 1e8, 0, 0, n * 1e3),
            }
            self.send_response(200)
            self.end_headers()
            self.wfile.write((flows("eth1", **sides) + "# EOF\n").encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_command_stops_and_acts(endpoint, tmp_path, capfd):
    acted = tmp_path / "acted-{host}"
    options = ["--every", "0.1", "--for", "60", "--out", str(tmp_path), "--json"]
    words = ["fleet", "canary", endpoint, *options, "--act", f"touch {acted}"]
    assert app(words, standalone_mode=False) == 3
    assert (tmp_path / "acted-127.0.0.1").exists()
    outcome = json.loads(capfd.readouterr().out)
    assert outcome["stop"]
    assert outcome["measures"]["retransmits"]["worse"] == 12
    page = (tmp_path / "canary.html").read_text("utf-8")
    assert "stop: worse in 12 of 12 intervals" in page


def test_hosts_without_a_canary_are_refused(endpoint, tmp_path):
    options = ["--out", str(tmp_path), "--interface", "lxc*"]
    with pytest.raises(RunError, match="no port has a canary"):
        app(["fleet", "canary", endpoint, *options], standalone_mode=False)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--act", "ssh 'x"], "--act: No closing quotation"),
        (["--act", "no-such-program {host}"], "--act: no program no-such-program"),
        (["--control", "http://127.0.0.1:1/metrics"], "in the canary and in its control"),
        (["--every", "nan"], "nan"),
        (["--for", "inf"], "inf"),
        (["--for", "1e300"], "is not in the range"),
        (["--every", "1e300"], "is not in the range"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_reading(options, reason, tmp_path):
    words = ["fleet", "canary", "127.0.0.1:1", "--out", str(tmp_path / "out"), *options]
    with pytest.raises((ScenarioError, click.BadParameter), match=reason):
        app(words, standalone_mode=False)


def test_a_silent_group_is_named(tmp_path):
    words = ["fleet", "canary", "127.0.0.1:1", "--control", "127.0.0.1:2", "--out", str(tmp_path)]
    with pytest.raises(RunError, match=r"a group has no port .127\.0\.0\.1:1: Connection refused"):
        app(words, standalone_mode=False)


def test_without_traffic_nothing_is_compared_and_the_exit_code_is_1(tmp_path, capsys):
    still = tmp_path / "node1.prom"
    sides = {"controlled": (0, 0, 0, 0), "held_out": (0, 0, 0, 0)}
    still.write_text(flows("eth1", **sides) + "# EOF\n", encoding="utf-8")
    words = ["fleet", "canary", str(still), "--every", "0.5", "--for", "1", "--out", str(tmp_path)]
    with pytest.raises(RunError, match="nothing was compared"):
        app(words, standalone_mode=False)
    assert "a side had no data" in capsys.readouterr().out
    assert (tmp_path / "canary.html").exists()


def test_a_host_that_vanishes_midway_is_left_out_from_then_on():
    empty = {"1023.0": 0, "+Inf": 0}
    before = canary.of_hosts({"a": host(0, 0, empty), "b": host(0, 0, empty)}, {"c": ""})
    after = canary.of_hosts({"a": host(1e9, 0, empty)}, {"c": ""})
    interval = canary.between(before, after, seconds=1, end_s=1)
    assert interval.canary["goodput"] == pytest.approx(8e9 / 4)
    assert interval.control == {}
    made = Canary(intervals=[interval])
    assert (made.compared(), made.is_stop(), made.judgements()) == (0, False, [])


def test_an_action_that_fails_is_reported_and_the_next_host_follows(endpoint, tmp_path, capfd):
    options = ["--every", "0.1", "--for", "60", "--out", str(tmp_path)]
    words = [
        "fleet",
        "canary",
        endpoint,
        "localhost:1",
        *options,
        "--act",
        "test {host} = localhost",
    ]
    assert app(words, standalone_mode=False) == 3
    printed = capfd.readouterr()
    assert "its action FAILED for 127.0.0.1." in printed.out
    assert printed.err.count("no answer: localhost:1") == 1
    assert "its action FAILED" in (tmp_path / "canary.html").read_text("utf-8")


def test_an_agent_has_both_sides(tmp_path):
    with Hosts(tmp_path, "sender", "receiver").made() as made:
        peer = ["type", "veth", "peer", "name", "eth0", "netns", made.names["receiver"]]
        made.call("sender", "ip", "link", "add", "eth1", *peer)
        for key, interface, address in (("sender", "eth1", 1), ("receiver", "eth0", 2)):
            made.call(key, "ip", "address", "add", f"10.9.1.{address}/24", "dev", interface)
            for name in ("lo", interface):
                made.call(key, "ip", "link", "set", name, "up")
        limit = "tbf rate 50mbit burst 16kb limit 128kb"
        made.call("sender", "tc", "qdisc", "add", "dev", "eth1", "root", *limit.split())
        port = '[metrics]\nlisten = "127.0.0.1:9468"\n'
        port += '[port.eth1]\nscheme = "fairq"\ncanary = "50 %"\n'
        command = [
            str(Path(sys.executable).with_name("penstock")),
            "fleet",
            "canary",
            "127.0.0.1:9468",
        ]
        command += ["--every", "1", "--for", "4", "--json", "--out", str(tmp_path)]
        with contextlib.ExitStack() as stack, made.daemon(port):

            def start(key, *words):
                started = subprocess.Popen(made.inside(key, *words), stdout=subprocess.DEVNULL)
                stack.callback(started.wait)
                stack.callback(started.kill)

            until(lambda: made.ports() == ["eth1"])
            start("receiver", "iperf3", "-s")
            until(lambda: ":5201" in made.call("receiver", "ss", "-Hltn"))
            start("sender", "iperf3", "-c", "10.9.1.2", "-P", "16", "-t", "30")
            outcome = json.loads(made.call("sender", *command, timeout=60))
    measures = outcome["measures"]
    assert measures["goodput"]["canary"] > 0
    assert measures["goodput"]["control"] > 0
    assert measures["retransmits"]["intervals"] == 4


def test_a_page_that_cannot_be_written_is_refused_before_the_first_interval(
    endpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waits"))
    (tmp_path / "file").touch()
    words = ["fleet", "canary", endpoint, "--out", str(tmp_path / "file" / "page")]
    with pytest.raises(ScenarioError, match="cannot be written"):
        app(words, standalone_mode=False)
