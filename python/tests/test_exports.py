# SPDX-License-Identifier: Apache-2.0
"""Recorded packets in the formats of other programs."""

import io
import json
import shutil
import struct
import subprocess
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

import penstock
from penstock.cli import app
from penstock.errors import ScenarioError
from penstock.exports import export, pcapng
from penstock.show import bursts, replay, timelines, turns
from penstock.show.recorded import Recorded


@pytest.fixture(scope="module")
def run():
    return penstock.run(
        "demo",
        schemes=["drop-tail", "fairq"],
        seeds=[1],
        overrides={
            "duration": "1.2 s",
            "traffic.mice.epochs": 2,
            "measure.packets.most": 3000,
        },
    )


def blocks(content):
    """Type and body of each block of a pcapng file."""
    at = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        assert length % 4 == 0
        assert struct.unpack_from("<I", content, at + length - 4)[0] == length
        yield kind, content[at + 8 : at + length - 4]
        at += length


def frames(content):
    """Interface, time in ns, bytes stored, and length on the wire of each packet."""
    for kind, body in blocks(content):
        if kind == 6:
            interface, high, low, stored, length = struct.unpack_from("<IIIII", body)
            yield interface, high << 32 | low, body[20 : 20 + stored], length


@pytest.fixture(scope="module")
def capture(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "fairq.pcapng"
    assert export(run, path, "fairq")[0] == "fairq"
    return path.read_bytes()


def test_a_capture_has_each_packet_where_it_was(run, capture):
    packets = run.packets.filter(scheme="fairq")
    forward = packets.filter(pl.col("forward"))
    at = Counter(interface for interface, *_ in frames(capture))
    assert at[pcapng.ARRIVED] == forward.height
    assert at[pcapng.SENT] == forward["left_s"].count()
    back = packets.filter(~pl.col("forward"))
    assert at[pcapng.BACK] == back.height
    rewritten = back.filter(pl.col("window") != pl.col("window_after"))
    assert at[pcapng.REWRITTEN] == rewritten.height > 0
    times = [time for _, time, *_ in frames(capture)]
    assert times == sorted(times)


def test_the_checksums_of_a_capture_are_right(capture):
    for _, _, stored, length in frames(capture):
        header, total = stored[14:34], struct.unpack_from("!H", stored, 16)[0]
        assert length == 14 + total
        assert pcapng._checksum(header) == 0
        segment = stored[34:]  # payload that is not stored is zeros
        pseudo = stored[26:34] + struct.pack("!BBH", 0, 6, total - 20)
        assert pcapng._checksum(pseudo + segment[: len(segment) // 2 * 2]) == 0


def test_wireshark_finds_nothing_wrong_in_a_capture(capture, tmp_path):
    program = shutil.which("tshark")
    if not program:
        pytest.fail("no tshark: install it, as `make test` does", pytrace=False)
    path = tmp_path / "fairq.pcapng"
    path.write_bytes(capture)

    def numbers(wanted):
        options = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
        command = (program, *options, "-r", path, "-Y", wanted, "-Tfields", "-eframe.number")
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return shown.stdout.split()

    assert len(numbers("tcp")) == sum(1 for _ in frames(capture))
    bad = ("_ws.malformed", 'tcp.checksum.status == "Bad"', 'ip.checksum.status == "Bad"')
    assert not numbers(" || ".join(bad))


def test_a_capture_shows_windows_before_and_after_the_scheme(run, capture):
    windows = {pcapng.BACK: [], pcapng.REWRITTEN: []}
    for interface, _, stored, _ in frames(capture):
        if interface in windows:
            windows[interface].append(struct.unpack_from("!H", stored, 48)[0])
    acks = run.packets.filter(~pl.col("forward"), scheme="fairq")
    assert sorted(windows[pcapng.BACK]) == sorted(acks["window"])
    changed = acks.filter(pl.col("window") != pl.col("window_after"))
    assert sorted(windows[pcapng.REWRITTEN]) == sorted(changed["window_after"])
    assert changed.filter(pl.col("window_after") > pl.col("window")).is_empty()


def test_syn_and_sack_carry_their_options():
    row = {
        **{"source": "a", "destination": "b", "seq": 1, "ack": 2, "payload": 0, "opener": True},
        **{"connection": 7, "ts_val": 3, "ts_ecr": 4, "flags": 0x802, "sack": None},
        "syn_options": 1460 | 8 << 16 | 1 << 24,
    }
    syn, _ = pcapng.frame(row, {"a": 0, "b": 1}, 100)
    assert syn[54:].startswith(struct.pack("!BBH", 2, 4, 1460) + struct.pack("!BBBB", 1, 3, 3, 7))
    ack = row | {"flags": 0x810, "syn_options": 0, "sack": "10-20 30-40 50-60 70-80"}
    sack, _ = pcapng.frame(ack, {"a": 0, "b": 1}, 100)
    assert sack[46] >> 4 == 5 + 3 + 1 + 6, "three blocks fit behind timestamps"


def test_events_are_qlogs(run, tmp_path):
    path = tmp_path / "run.qlog"
    _, count = export(run, path, "drop-tail")
    document = json.loads(path.read_text())
    traces = document["traces"]
    assert count == sum(len(trace["events"]) for trace in traces)
    names = Counter(event["name"] for trace in traces for event in trace["events"])
    packets = run.packets.filter(scheme="drop-tail")
    assert names["transport:packet_dropped"] == packets["lost"].count() > 0
    assert names["recovery:metrics_updated"] > 100
    for trace in traces:
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)


def test_what_cannot_be_exported_is_refused_in_one_line(run, tmp_path):
    for of, path, scheme, message in (
        (run, "x.pcap", None, "allowed: names that end in .pcapng"),
        (run, "x.pcapng", "fairqq", "did you mean 'fairq'"),
        (penstock.run("minimal", seeds=[1]), "x.qlog", None, "has recorded no packets"),
    ):
        with pytest.raises(ScenarioError) as caught:
            export(of, tmp_path / "new" / path, scheme)
        assert message in str(caught.value)
        assert not (tmp_path / "new").exists()


def test_the_command_writes_a_file(run, tmp_path):
    folder = run.save(tmp_path / "run")
    to = tmp_path / "x.pcapng"
    result = CliRunner().invoke(app, ["export", str(folder), "--to", str(to)])
    assert result.exit_code == 0, result.output
    assert "packets of drop-tail" in result.stdout
    assert to.read_bytes().startswith(b"\x0a\x0d\x0d\x0a")


def test_a_capture_of_a_saved_run_is_the_same(run, tmp_path):
    loaded = penstock.Run.load(run.save(tmp_path / "run"))
    for one in ("packets", "events"):
        assert getattr(loaded, one).equals(getattr(run, one))


def test_a_replay_has_the_queue_of_its_first_instant(run):
    burst = replay.replay(run)
    assert set(burst["schemes"]) == {"drop-tail", "fairq"}
    for packets in burst["schemes"].values():
        assert len({len(column) for column in packets.values()}) == 1
        assert min(packets["time"]) < 0 <= max(packets["time"]) <= burst["span"]
        waits = [
            left for left, lost in zip(packets["left"], packets["lost"], strict=True) if not lost
        ]
        assert all(left > 0 for left in waits if left is not None)
    assert burst["rate"] == pytest.approx(0.125, rel=1e-6), "1 Gb/s"


def test_turns_have_a_row_for_each_transfer_of_the_burst(run):
    (chart,) = turns.charts(run)
    assert [panel.title for panel in chart.panels] == ["drop-tail", "fairq"]
    assert chart.panels[0].series[1].x, "drop-tail drops"
    sent, _ = chart.panels[1].series
    last = [max(x for x, y in zip(sent.x, sent.y, strict=True) if y == row) for row in range(1, 61)]
    assert last == pytest.approx(sorted(last), abs=1e-5), "rows are in the order of their ends"
    mice = run.packets.filter(
        (pl.col("scheme") == "fairq") & (pl.col("traffic") == "mice"),
        pl.col("forward") & (pl.col("payload") > 0) & pl.col("left_s").is_not_null(),
    )
    assert len(sent.x) == mice.height
    assert not list(turns.charts(replace(run, packets=run.packets.clear())))
    datagrams = run.packets.with_columns(traffic=pl.lit(None, dtype=pl.String))
    assert not list(turns.charts(replace(run, packets=datagrams)))


def test_turns_are_of_a_burst_that_was_recorded(run):
    later = pl.concat([run.flows] * 3).with_columns(start_s=pl.lit(5.0), end_s=pl.lit(6.0))
    more = replace(run, flows=pl.concat([run.flows, later]))
    assert list(turns.charts(more)) == list(turns.charts(run))


def test_a_burst_is_where_most_begin_together():
    assert bursts.begin([]) is None
    assert bursts.begin([1.0, 1.001, 1.0015]) is None
    assert bursts.begin([5.0, 1.0, 1.0005, 1.001, 1.0015, 9.0]) == 1.0
    assert bursts.begin([*[1.0] * 4, *[2.0] * 5, *[3.0] * 5]) == 2.0


def test_timelines_have_the_slowest_and_the_median_first(run):
    flows = timelines.timelines(run)
    labels = [flow.label.split(":")[0] for flow in flows[:4]]
    assert labels == ["slowest", "median", "slowest", "median"]
    for scheme in ("drop-tail", "fairq"):
        times = [flow.fct_s or float("inf") for flow in flows if flow.scheme == scheme]
        assert times[0] == max(times)
    fairq = next(flow for flow in flows if flow.scheme == "fairq")
    lines = {line.name: line for line in fairq.charts[0].panels[0].series}
    sent, rewritten = lines["window as sent"], lines["window as rewritten"]
    assert max(rewritten.y) < max(sent.y)
    drop_tail = flows[0].charts[0].panels[0].series
    assert "window as rewritten" not in {line.name for line in drop_tail}
    for flow in flows:
        ends = {line.x[-1] for line in flow.charts[0].panels[0].series if line.kind == "step"}
        assert len(ends) <= 1, "what stays as it is goes on to the last event"


def test_a_stream_is_enough():
    stream = io.BytesIO()
    assert pcapng.write(stream, [], {}, "a->b") == 0
    assert [kind for kind, _ in blocks(stream.getvalue())] == [0x0A0D0D0A, 1, 1, 1, 1]


def test_a_timeline_is_of_one_connection():
    """Epochs have the same numbers of flows, and one begins before that before it has ended."""
    run = penstock.run(EPOCHS)
    recorded = Recorded(run)
    flows = [flow for flow, _ in timelines._in_order(recorded)]
    assert len(flows) == run.flows.height == 48
    keys = [recorded._key(flow) for flow in flows]
    assert len(set(keys)) == len(flows), "a connection for each"
    assert run.flows["timeouts"].sum() > 0
    for flow, (scheme, number) in zip(flows, keys, strict=True):
        events = run.events.filter(scheme=scheme, connection=number, event="rto")
        assert events.height == flow["timeouts"]


EPOCHS = {
    "title": "Epochs that overlap",
    "duration": "1 s",
    "schemes": ["drop-tail"],
    "fabric": {
        "kind": "dumbbell",
        "senders": 16,
        "receivers": 1,
        "access": {"rate": "1 Gb/s", "delay": "10 us"},
        "bottleneck": {"rate": "1 Gb/s", "delay": "30 us", "buffer": "20 kB"},
    },
    "traffic": {
        "mice": {
            **{"kind": "incast", "size": "20 kB", "from": "senders", "to": "receiver1"},
            **{"epochs": 3, "every": "10 ms"},
        }
    },
    "measure": {"packets": {"most": 60_000}},
}


def test_timelines_are_of_the_seed_whose_packets_are_kept():
    changes = {"duration": "50 ms", "traffic.mice.epochs": 1, "measure.packets": {}}
    made = penstock.run("demo", schemes=["drop-tail"], seeds=[8, 3], overrides=changes)
    assert made.packets["seed"].unique().to_list() == [8]
    of_first = made.flows.filter(seed=8)
    recorded = Recorded(made)
    assert {flow["seed"] for flow, _ in timelines._in_order(recorded)} == {8}
    assert of_first.height
