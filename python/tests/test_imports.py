# SPDX-License-Identifier: Apache-2.0
"""Recordings become scenarios; whatever a file holds, reading it ends with one or with one line."""

import io
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import penstock
from penstock import imports
from penstock.imports import capture, packets

from .test_cli import penstock as command


def frame(source, destination, sequence, payload, *, flags=0x10, ports=(5001, 80), v6=False):
    """An Ethernet frame with a TCP segment whose payload is zeros."""
    tcp = struct.pack("!HHIIBBHHH", *ports, sequence, 0, 5 << 4, flags, 1000, 0, 0)
    body = tcp + bytes(payload)
    if v6:
        address = [bytes(15) + bytes([host]) for host in (source, destination)]
        network = struct.pack("!IHBB", 6 << 28, len(body), 6, 64) + b"".join(address)
        return bytes(12) + b"\x86\xdd" + network + body
    address = [bytes([10, 0, 0, host]) for host in (source, destination)]
    total = 20 + len(body)
    network = struct.pack("!BBHHHBBH", 0x45, 0, total, 0, 0, 64, 6, 0) + b"".join(address)
    return bytes(12) + b"\x08\x00" + network + body


def pcap(frames, *, order="<", nanoseconds=False, snap=65535):
    """A capture of (seconds, frame)."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    unit = 1e9 if nanoseconds else 1e6
    text = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, 1)
    for time_s, data in frames:
        fraction = round((time_s % 1) * unit)
        kept = data[:snap]
        text += struct.pack(f"{order}IIII", int(time_s), fraction, len(kept), len(data)) + kept
    return text


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def pcapng(frames, order="<"):
    """The same as pcapng, with times in nanoseconds."""
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    resolution = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    text = block(0x0A0D0D0A, section, order)
    text += block(1, struct.pack(f"{order}HHI", 1, 0, 0) + resolution, order)
    for time_s, data in frames:
        ticks = round(time_s * 1e9)
        head = struct.pack(
            f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data)
        )
        text += block(6, head + data, order)
    return text


STORY = [
    (100.0, frame(1, 2, 1000, 0, flags=0x02)),  # SYN
    (100.001, frame(1, 2, 1001, 1000)),
    (100.002, frame(1, 2, 2001, 1000)),
    (100.003, frame(1, 2, 1001, 1000)),  # again
    (100.004, frame(2, 1, 7001, 0, ports=(80, 5001))),  # a pure ACK
    (100.005, frame(2, 1, 7001, 300, ports=(80, 5001))),
    (100.2, frame(1, 2, 3001, 500)),  # after a pause
    (100.3, b"\x00" * 60),
]
EXPECTED = [
    (0.0, "10.0.0.1", "10.0.0.2", 2000),
    (0.004, "10.0.0.2", "10.0.0.1", 300),
    (0.199, "10.0.0.1", "10.0.0.2", 500),
]


def flows_of(tmp_path, content, name="file", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    recording = imports.read(path, **options)
    return [(round(flow.start_s, 9), *flow[1:]) for flow in recording.flows], recording


@pytest.mark.parametrize(
    "content",
    [
        pcap(STORY),
        pcap(STORY, order=">"),
        pcap(STORY, nanoseconds=True),
        pcap(STORY, snap=60),
        pcapng(STORY),
        pcapng(STORY, ">"),
        pcapng(STORY) + pcapng([], ">"),
    ],
    ids=["little", "big", "nanoseconds", "cut", "pcapng", "pcapng-big", "two-sections"],
)
def test_a_capture_gives_what_each_end_sends_once(tmp_path, content):
    flows, recording = flows_of(tmp_path, content)
    assert flows == EXPECTED
    assert recording.hosts == {"10.0.0.1": "host1", "10.0.0.2": "host2"}
    assert recording.notes == ["left out: 1 packets without TCP"]


def test_a_capture_of_ipv6_and_a_wrapped_sequence(tmp_path):
    story = [
        (1.0, frame(1, 2, 0xFFFFFF00, 256, v6=True)),
        (1.001, frame(1, 2, 0, 100, v6=True)),
        (1.002, frame(1, 2, 0xFFFFFF00, 256, v6=True)),
    ]
    flows, _ = flows_of(tmp_path, pcap(story))
    assert flows == [(0.0, "::1", "::2", 356)]


def test_a_capture_that_breaks_off_gives_what_is_before(tmp_path):
    for content in (pcap(STORY)[:-30], pcapng(STORY)[:-30]):
        flows, recording = flows_of(tmp_path, content)
        assert flows == EXPECTED
        assert any("breaks off at byte" in note for note in recording.notes)


SS = """\
1700000000.000
ESTAB 0 0 10.0.0.1:5001 10.0.0.2:80
\t cubic wscale:7,7 rto:204 bytes_sent:1100 bytes_acked:1000 bytes_received:50 segs_out:9
1700000000.010
ESTAB 0 0 10.0.0.1:5001 10.0.0.2:80
\t cubic wscale:7,7 rto:204 bytes_sent:5100 bytes_acked:5000 bytes_received:50 segs_out:19
ESTAB 0 0 [::ffff:10.0.0.3]:22 [::ffff:10.0.0.2]:9 cubic bytes_acked:70
1700000000.020
ESTAB 0 0 10.0.0.1:5001 10.0.0.2:80
\t cubic bytes_acked:6000 bytes_received:50
1700000001.000
ESTAB 0 0 10.0.0.1:5001 10.0.0.2:80
\t cubic bytes_acked:6500 bytes_received:950
"""


def test_a_log_of_ss_gives_what_the_counters_grow_by(tmp_path):
    flows, _ = flows_of(tmp_path, SS, gap_s=0.005)
    # The pause of a second is between two snapshots, so it may not have been one.
    assert [(round(start_s, 6), *rest) for start_s, *rest in flows] == [
        (0.0, "10.0.0.1", "10.0.0.2", 5500),
        (0.0, "10.0.0.3", "10.0.0.2", 70),
        (0.02, "10.0.0.2", "10.0.0.1", 900),
    ]


@pytest.mark.parametrize("time", ["", "1700000000.000\n"])
def test_a_log_of_ss_with_one_snapshot_gives_what_the_counters_have(tmp_path, time):
    snapshot = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:80 cubic bytes_acked:5000 bytes_received:50\n"
    flows, _ = flows_of(tmp_path, time + snapshot)
    assert flows == [(0.0, "10.0.0.1", "10.0.0.2", 5000), (0.0, "10.0.0.2", "10.0.0.1", 50)]


def test_records_of_netflow_and_ipfix(tmp_path):
    nfdump = (
        "ts,te,td,sa,da,sp,dp,pr,ibyt\n"
        "2026-01-31 12:00:00.500,2026-01-31 12:00:01,0.5,10.0.0.1,10.0.0.2,1,2,TCP,1500\n"
        "2026-01-31 12:00:00.250,2026-01-31 12:00:01,0.5,10.0.0.3,10.0.0.2,1,2,UDP,99\n"
        "2026-01-31 12:00:00.250,2026-01-31 12:00:01,0.5,10.0.0.3,10.0.0.2,1,2,TCP,3000\n"
        "Summary\nflows,bytes\n"
    )
    flows, recording = flows_of(tmp_path, nfdump)
    assert flows == [(0.0, "10.0.0.3", "10.0.0.2", 3000), (0.25, "10.0.0.1", "10.0.0.2", 1500)]
    assert len(recording.notes) == 2
    ipfix = (
        "flowStartMilliseconds,sourceIPv4Address,destinationIPv4Address,protocolIdentifier,"
        "octetDeltaCount\n1000,a,b,6,10\n1500,b,a,6,20\n1500,b,a,17,20\n"
    )
    assert flows_of(tmp_path, ipfix)[0] == [(0.0, "a", "b", 10), (0.5, "b", "a", 20)]


def test_rows_of_millisampler_are_bursts(tmp_path):
    rows = "time_ms,in_bytes,connections\n0,0,0\n1,1000,2\n2,5000,3\n3,0,0\n4,800,0\n"
    flows, _ = flows_of(tmp_path, rows)
    assert flows == [
        *((0.0, f"sender{number}", "measured", 2000) for number in (1, 2, 3)),
        (0.003, "sender1", "measured", 800),
    ]


def test_an_import_runs(tmp_path):
    path = tmp_path / "story.pcap"
    path.write_bytes(pcap(STORY))
    recording = imports.read(path)
    written = imports.write(recording, tmp_path / "out", rate="1 Gb/s")
    run = penstock.run(written, schemes=["drop-tail"])
    assert run.flows["bytes"].to_list() == [size for *_, size in EXPECTED]
    assert run.flows["fct_s"].null_count() == 0
    assert run.flows["start_s"].to_list() == pytest.approx([start for start, *_ in EXPECTED])
    with pytest.raises(penstock.ScenarioError, match="not an empty folder"):
        imports.write(recording, tmp_path / "out")


def test_a_wrong_option_of_an_import_writes_nothing(tmp_path):
    path = tmp_path / "story.pcap"
    path.write_bytes(pcap(STORY))
    for option, value in (("--rate", "fast"), ("--delay", "3"), ("--buffer", "x")):
        err = command("import", path, option, value, "--out", tmp_path / "out", code=2).stderr
        assert err.startswith(f"penstock: {option}: "), err
        assert "scenario.toml" not in err
    assert not (tmp_path / "out").exists()
    command("import", path, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "of no known format"),
        (b"hello", "of no known format"),
        (pcap([]), "holds no transfer"),
        (pcap(STORY)[:10], "holds no transfer (the file breaks off in its header"),
        (pcapng(STORY)[:8], "damaged at byte 0"),
        (b"ts,sa,da\n1,2,3\n", "has no column for the bytes"),
        (b"ts,sa,da,ibyt\nyesterday,a,b,3\n", ":2: ts: 'yesterday'; allowed: seconds, or a date"),
        (b"ts,sa,da,ibyt\n1,a,b,-3\n", ":2: ibyt: '-3'; allowed: a number from 0"),
        (b"ts,sa,da,ibyt\n1,a,b,9e30\n", ":2: ibyt: '9e30'; allowed: a number from 0"),
        (b"ts,sa,da,ibyt\n1,a,b,3\n1e9,a,b,3\n", "lasts 1e+09 s"),
        (b"time_s,in_bytes\nnan,1\n", ":2: time_s: 'nan'; allowed: a finite number"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(penstock.ScenarioError) as refused:
        imports.read(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_an_unknown_kind(tmp_path):
    with pytest.raises(penstock.ScenarioError, match="cannot be read"):
        imports.read(tmp_path / "none")
    with pytest.raises(penstock.ScenarioError, match=r"^--as: .*allowed: pcap, ss, netflow"):
        imports.read(tmp_path / "none", kind="pdf")


GOOD = [pcap(STORY), pcapng(STORY), SS.encode(), b"ts,sa,da,ibyt\n1,a,b,3\n2,b,a,4\n"]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    base=st.sampled_from(GOOD),
    kind=st.sampled_from([None, *imports.FORMATS]),
    edits=st.lists(st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=6)), max_size=6),
    cut=st.integers(0, 4000),
)
@example(base=GOOD[3], kind=None, edits=[(0, b"\x00\r")], cut=0)
def test_damaged_files_end_in_transfers_or_one_line(tmp_path, base, kind, edits, cut):
    content = bytearray(base)
    for place, piece in edits:
        content[place % len(content) : place % len(content) + len(piece)] = piece
    path = Path(tmp_path / "fuzzed")
    path.write_bytes(bytes(content[: len(content) - cut % len(content)]))
    recording, message = None, ""
    try:
        recording = imports.read(path, kind=kind)
    except penstock.ScenarioError as error:
        message = str(error)
    assert "\n" not in message
    assert message or (recording.flows and all(flow.size > 0 for flow in recording.flows))


@given(st.binary(max_size=200), st.sampled_from([0, 1, 12, 101, 113, 276, 9999]))
def test_any_packet_is_a_segment_or_none(data, link_type):
    segment = packets.segment(link_type, data)
    assert segment is None or segment.payload >= 0


@given(st.binary(max_size=400))
def test_any_bytes_are_packets_or_damage(data):
    for magic in (b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a"):
        with suppress(penstock.ScenarioError):
            list(capture.packets(io.BytesIO(magic + data), "f", lambda _: None))


@pytest.mark.parametrize(("rate", "least_s"), [("1 Mb/s", 16.0), ("1 Gb/s", 1.0)])
def test_an_imported_scenario_lasts_as_long_as_its_transfers(tmp_path, rate, least_s):
    """10.0.0.2 receives 1 MB, which takes 8 s at 1 Mb/s."""
    path = tmp_path / "flows.csv"
    path.write_text("ts,sa,da,ibyt\n1,10.0.0.1,10.0.0.2,400000\n1,10.0.0.3,10.0.0.2,600000\n")
    written = imports.write(imports.read(path), tmp_path / "out", rate=rate)
    assert float(penstock.validate(written)["duration"].split()[0]) >= 1000 * least_s


def test_transfers_within_one_address_are_noted(tmp_path):
    story = [(1.0, frame(1, 2, 1, 10)), (1.0, frame(2, 2, 1, 20)), (1.1, frame(1, 1, 1, 20))]
    flows, recording = flows_of(tmp_path, pcap(story))
    assert len(flows) == 1
    assert recording.notes == ["left out: 2 transfers within one address"]


def test_a_connection_with_both_ends_in_a_log_counts_once(tmp_path):
    log = (
        "ESTAB 0 0 10.0.0.1:1 [::ffff:10.0.0.2]:80 cubic bytes_acked:5000 bytes_received:50\n"
        "ESTAB 0 0 10.0.0.2:80 10.0.0.1:1 cubic bytes_acked:50 bytes_received:5000\n"
        "ESTAB 0 0 10.0.0.2:80 10.0.0.3:1 cubic bytes_received:70\n"
    )
    flows, _ = flows_of(tmp_path, log)
    assert flows == [
        (0.0, "10.0.0.1", "10.0.0.2", 5000),
        (0.0, "10.0.0.2", "10.0.0.1", 50),
        (0.0, "10.0.0.3", "10.0.0.2", 70),
    ]


@pytest.mark.parametrize("gap", ["nan ms", "inf s", "1e999 s", "-5 ms", "10ms", ""])
def test_a_gap_that_is_no_time_is_refused(tmp_path, gap):
    (tmp_path / "story.pcap").write_bytes(pcap(STORY))
    err = command("import", tmp_path / "story.pcap", "--gap", gap, cwd=tmp_path, code=2).stderr
    assert err == f"penstock: --gap: '{gap}' is no time; allowed: as in '10 ms'\n"
    assert not (tmp_path / "story").exists()
