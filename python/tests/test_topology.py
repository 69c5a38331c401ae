# SPDX-License-Identifier: Apache-2.0
"""Pictures of fabrics: each kind, large ones aggregated, the bottleneck marked."""

from itertools import pairwise

import pytest

from penstock import api
from penstock.show import topology, topology_drawing

LINK = {"rate": "10 Gb/s", "delay": "1 us"}


def made(fabric):
    scenario = {
        "title": "Drawn",
        "duration": "1 ms",
        "schemes": ["drop-tail"],
        "fabric": fabric,
        "traffic": {"t": {"kind": "bulk", "from": "all", "to": "all", "pairs": "random"}},
    }
    return topology.fabric(api.resolved(scenario))


DUMBBELL = {"kind": "dumbbell", "senders": 8, "receivers": 1, "access": LINK, "bottleneck": LINK}
LEAF_SPINE = {"kind": "leaf-spine", "leaves": 9, "spines": 4, "hosts_per_leaf": 16}
LEAF_SPINE |= {"host_link": LINK, "spine_link": {"rate": "40 Gb/s", "delay": "2 us"}}
RING = {"kind": "graph", "host_link": LINK, "hosts_per_switch": 2}
RING |= {"edges": [["a", "b"], ["b", "c"], ["c", "d", "1 Gb/s"], ["d", "a"]]}


@pytest.mark.parametrize(
    ("fabric", "rows", "size"),
    [
        (DUMBBELL, [2], "9 hosts, 2 switches"),
        (DUMBBELL | {"racks": 4}, [5, 1], "9 hosts, 6 switches"),
        (LEAF_SPINE, [9, 4], "144 hosts, 13 switches"),
        ({"kind": "fat-tree", "k": 4, "host_link": LINK}, [8, 8, 4], "16 hosts, 20 switches"),
        (RING, [4], "8 hosts, 4 switches"),
    ],
)
def test_switches_are_in_rows_and_every_box_is_on_the_page(fabric, rows, size):
    found = made(fabric)
    assert ([len(row) for row in found.rows], found.size) == (rows, size)
    drawn = topology_drawing.picture(found)
    assert len(drawn.boxes) <= 7 * (len(rows) + 1)
    for box in drawn.boxes:
        assert box.width / 2 <= box.x <= topology_drawing.WIDTH - box.width / 2
        assert 0 < box.y < drawn.height - box.height
    spans = sorted((box.y, box.x - box.width / 2, box.x + box.width / 2) for box in drawn.boxes)
    for (y, _, end), (below, begin, _) in pairwise(spans):
        assert y != below or end <= begin, "boxes cover each other"


def test_a_switch_with_a_marked_port_has_its_own_box():
    drawn = topology_drawing.picture(made(LEAF_SPINE), ["leaf9->spine1"], "where it hurts")
    assert "leaf9" in {box.title for box in drawn.boxes}
    assert "leaf7" not in {box.title for box in drawn.boxes}
    (marked,) = [line.title for line in drawn.lines if line.is_marked]
    assert marked == "leaf9, spine1: 40 Gb/s, 2 µs"
    assert "leaf9->spine1, where it hurts" in drawn.meaning


def test_what_is_different_at_a_port_is_named():
    slow = LEAF_SPINE | {"port_at": {"leaf1->spine1": {"rate": "1 Gb/s"}}}
    lines = "\n".join(topology.lines(made(slow)))
    assert "| 35 × 40 Gb/s, 2 µs; 1 Gb/s and 40 Gb/s, 2 µs\n" in lines
    assert "16 hosts at each of leaf1 to leaf9" in lines


def test_of_a_huge_fabric_there_is_no_picture():
    assert made(DUMBBELL | {"senders": 30_000}) is None
