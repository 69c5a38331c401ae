# SPDX-License-Identifier: Apache-2.0
"""The page of a fleet: exported files, endpoints, and what is charged to which port."""

import contextlib
import itertools
import json
import resource
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import polars as pl
import pytest

from penstock import RunError, ScenarioError
from penstock.cli import app
from penstock.fleet import page, readings, sources, verdict


def metrics(*ports):
    """Metrics as penstockd prints them, of ports with these values."""
    lines = ["# TYPE penstock_acks counter"]
    for interface, scheme, values in ports:
        labels = f'interface="{interface}",scheme="{scheme}"'
        for name, value in values.items():
            if name.startswith("would_"):
                candidate = f'{labels},candidate="{name.removeprefix("would_")}"'
                lines.append(f"penstock_acks_would_rewrite_total{{{candidate}}} {value}")
            else:
                suffix = "_total" if name in readings.COUNTERS else ""
                lines.append(f"penstock_{name}{suffix}{{{labels}}} {value}")
    return "\n".join([*lines, "# EOF", ""])


BAD = {"egress_packets": 900, "qdisc_drops": 100, "timeouts_seen": 50, "acks": 400, "acting": 0}
WITH = BAD | {"would_fairq": 300, "would_hscc": 100}


def ports(texts):
    return verdict.judged(readings.ports(texts))


def test_waits_are_charged_to_ports_that_drop():
    calm = {"egress_packets": 10, "qdisc_drops": 0, "timeouts_seen": 5, "acting": 1}
    text = metrics(("eth1", "observe", WITH), ('we"ird'.replace('"', '\\"'), "fairq", calm))
    judged = ports({"a": text})
    assert judged["wait_s"].to_list() == [10.0, 0.0]
    assert judged["elsewhere_s"].to_list() == [0.0, 1.0]
    assert judged["drop_share"][0] == pytest.approx(0.1)
    assert judged["saved_fairq_s"][0] == pytest.approx(7.5)
    assert judged["saved_hscc_s"][0] == pytest.approx(2.5)
    assert judged["saved_grant_s"][0] == pytest.approx(10)
    summary = verdict.summary(judged)
    assert (summary["suffering"], summary["begin_with"], summary["not_acting"]) == (1, 1, 0)
    assert page.sentences(summary)[:2] == [
        "1 of 2 ports on 1 host has timeouts and drops.",
        "Senders waited at least 10.0 s there; 1 port has 80 % of it: begin with it.",
    ]


def test_two_readings_count_what_is_between():
    before = readings.ports({"a": metrics(("eth1", "observe", WITH), ("eth2", "observe", WITH))})
    again = WITH | {"timeouts_seen": 60, "acks": 500}
    restarted = WITH | {"timeouts_seen": 3}
    after = readings.ports(
        {"a": metrics(("eth1", "observe", again), ("eth2", "observe", restarted))}
    )
    between = readings.between(before, after)
    assert between["timeouts_seen"].to_list() == [10, 3]
    assert between["acks"].to_list() == [100, 0]


def test_a_thousand_hosts_of_synthetic_data(tmp_path):
    folder = tmp_path / "exported"
    folder.mkdir()
    for number in range(1000):
        suffering = WITH | {"timeouts_seen": 1000 if number < 8 else number % 2}
        rows = [("eth0", "observe", suffering)]
        rows += [(f"eth{k}", "observe", WITH | {"qdisc_drops": 0}) for k in range(1, 9)]
        (folder / f"node{number}.prom").write_text(metrics(*rows), encoding="utf-8")
    out = tmp_path / "page"
    texts, failed = sources.collect([str(folder)])
    judged = ports(texts)
    assert (len(texts), failed, judged.height) == (1000, [], 9000)
    assert verdict.summary(judged)["begin_with"] == 7
    app(["fleet", "observe", str(folder), "--out", str(out)], standalone_mode=False)
    assert pl.read_csv(out / "ports.csv").height == 9000
    assert "node0 eth0" in (out / "fleet.html").read_text(encoding="utf-8")


def test_endpoints_are_read_and_silent_ones_listed(tmp_path, capsys):
    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(metrics(("eth1", "observe", WITH)).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = f"127.0.0.1:{server.server_port}"
        words = ["fleet", "observe", name, "127.0.0.1:1", "--json", "--out", str(tmp_path)]
        app(words, standalone_mode=False)
        server.shutdown()
    summary = json.loads(capsys.readouterr().out)
    assert (summary["ports"], summary["timeouts"]) == (1, 50)
    assert summary["failed"][0].startswith("127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no/such/file", "no such file or folder"),
        ("127.0.0.1:1", "Connection refused"),
        ("127.0.0.1:65537", "Port out of range"),
        ("ftp://node1", "no endpoint"),
        ("node 7:9468", "."),
        ("[::1", "."),
        ("node..1:9468", "."),
    ],
)
def test_without_any_port_nothing_is_written(name, reason, tmp_path):
    with pytest.raises(RunError, match=reason):
        app(["fleet", "observe", name, "--out", str(tmp_path / "out")], standalone_mode=False)
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_whole_reading_are_left_out_and_listed(tmp_path, capsys):
    whole = metrics(("eth1", "observe", WITH))
    folder = tmp_path / "exported"
    folder.mkdir()
    foreign = whole.replace("# EOF\n", "node_load1 0.5\n")  # by node_exporter
    for name, content in {
        "whole": whole.encode(),
        "twice": (whole.replace(" 50\n", " 40\n") + whole).encode(),
        "node-exporter": foreign.encode(),
        "half": whole[: len(whole) // 2].encode(),
        "cut": whole.removesuffix("# EOF\n").encode(),
        "empty": b"",
        "other": b"<html>not found</html>\n",
        "binary": b"\xff\xfe\x00",
        "idle": b"# TYPE penstock_acks counter\n# EOF\n",
        "broken-values": whole.replace(" 50\n", " NaN\n").replace(" 900\n", " -1\n").encode(),
    }.items():
        (folder / f"{name}.prom").write_bytes(content)
    bare = tmp_path / "bare"
    bare.mkdir()
    words = ["fleet", "observe", str(folder), str(bare), "--json", "--out", str(tmp_path / "out")]
    app(words, standalone_mode=False)
    summary = json.loads(capsys.readouterr().out)
    assert (summary["hosts"], summary["timeouts"]) == (4, 150)
    reasons = dict(line.removeprefix(f"{tmp_path}/").split(": ", 1) for line in summary["failed"])
    assert reasons["exported/half.prom"].startswith("incomplete")
    assert reasons["exported/cut.prom"].startswith("incomplete")
    for name in ("empty", "other"):
        assert reasons[f"exported/{name}.prom"] == "no metrics of penstockd"
    assert reasons["exported/binary.prom"].startswith("not text")
    assert reasons["idle"] == "no ports; attach observe to some"
    assert reasons["bare"].startswith("no metrics in it")


def test_a_host_counts_once(tmp_path):
    text = metrics(("eth1", "observe", WITH))
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "node1.prom").write_text(text, encoding="utf-8")
    monday = str(tmp_path / "monday")
    texts, failed = sources.collect([monday, monday, f"{monday}/node1.prom"])
    assert (list(texts), failed) == (["node1"], [])
    for second in (str(tmp_path / "tuesday"), "node1:9468", "http://node1:9468/metrics"):
        with pytest.raises(ScenarioError, match="node1 is in"):
            sources.collect([monday, second])
    texts, failed = sources.collect(["127.0.0.1:1", "http://127.0.0.1:1/metrics", "127.0.0.1:2"])
    assert (texts, len(failed)) == ({}, 2)


def test_two_readings_are_of_hosts_that_answer_both(monkeypatch, tmp_path):
    text = metrics(("eth1", "observe", WITH))
    answers = iter([({"a": text, "gone": text}, []), ({"a": text, "late": text}, ["gone: reset"])])
    monkeypatch.setattr(sources, "collect", lambda _: next(answers))
    first, _ = sources.collect(["a"])
    second, failed = sources.again(["a"], first)
    assert (list(second), failed) == (
        ["a"],
        ["gone: reset", "late: answered the second reading alone"],
    )
    file = tmp_path / "node1.prom"
    file.write_text(text, encoding="utf-8")
    words = ["fleet", "observe", str(file), "--for", "1", "--out", str(tmp_path / "out")]
    with pytest.raises(ScenarioError, match="a file has one reading"):
        app(words, standalone_mode=False)


def test_an_endpoint_that_trickles_or_answers_without_metrics_is_given_up():
    def serve(listening, answer):
        with listening.accept()[0] as connection, contextlib.suppress(OSError):
            for part in answer:
                connection.sendall(part)
                time.sleep(0.1)

    endless = itertools.chain([b"HTTP/1.0 200 OK\r\n\r\n"], itertools.repeat(b"#"))
    missing = [b"HTTP/1.0 404 Not Found\r\n\r\n"]
    for answer, reason in (
        (endless, "no whole answer within 0.5 s"),
        ([b"SSH-2.0\r\n"], "SSH"),
        (missing, ": HTTP 404 Not Found"),
    ):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            name = f"127.0.0.1:{listening.getsockname()[1]}"
            threading.Thread(target=serve, args=(listening, answer), daemon=True).start()
            texts, (failed,) = sources.collect([name], timeout_s=0.5)
            assert not texts
            assert reason in failed


def test_a_table_that_does_not_fit_leaves_the_earlier_one(tmp_path):
    rows = [(f"eth{n}", "observe", WITH) for n in range(500)]
    (tmp_path / "a.prom").write_text(metrics(*rows), encoding="utf-8")
    out = tmp_path / "out"
    out.mkdir()
    (out / "ports.csv").write_text("earlier")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            app(
                ["fleet", "observe", str(tmp_path / "a.prom"), "--out", str(out)],
                standalone_mode=False,
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (out / "ports.csv").read_text() == "earlier"
