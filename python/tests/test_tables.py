# SPDX-License-Identifier: Apache-2.0
import polars as pl

from penstock import tables


def test_columns_have_their_types_even_where_all_are_missing():
    text = b"traffic,flow,end_s,missed_deadline,extra\nmice,0,,true,7\nmice,1,,false,8\n"
    frame = tables.read(text, tables.FLOWS, "hcf", 3)
    assert frame.columns[:2] == ["scheme", "seed"]
    assert frame["end_s"].dtype == pl.Float64
    assert frame["end_s"].null_count() == 2
    assert frame["missed_deadline"].to_list() == [True, False]
    assert frame["extra"].to_list() == [7, 8]


def test_no_rows_still_make_a_table():
    empty = tables.read(b"", tables.QUEUES, "hcf", 1)
    assert tables.stack([empty, empty]).height == 0


def test_ports_get_their_names():
    text = b"port,time_s,bytes,packets\n1,0.5,1500,1\n0,0.5,0,0\n"
    frame = tables.read_queues(text, ["a->b", "b->c"], "hcf", 1)
    assert frame["port"].to_list() == ["b->c", "a->b"]
    none = tables.read_queues(b"", ["a->b"], "hcf", 2)
    assert tables.stack([frame, none]).height == 2


def test_floats_come_through_exactly():
    value = 0.1 + 0.2
    frame = tables.read(f"time_s\n{value!r}\n".encode(), tables.QUEUES, "x", 1)
    assert frame["time_s"].item() == value


def test_a_reason_that_one_run_lacks_counts_as_none():
    rows = [
        ("a", 1, {"p": {"drops": 0, "drops_by_reason": {}}}),
        ("b", 1, {"p": {"drops": 2, "drops_by_reason": {"full": 2}}}),
    ]
    assert tables.ports(rows)["drops_full"].to_list() == [0, 2]
