# SPDX-License-Identifier: Apache-2.0
import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from penstock import tables
from penstock_papers.analysis import (
    delay,
    fairq,
    fairq_law,
    hcf,
    hscc,
    hscc_cycle,
    hscc_model,
    hscc_time,
    hscc_timeouts,
    sicc,
)
from penstock_papers.analysis.fairq_law import Law
from penstock_papers.analysis.hscc_model import Port

PORT = Port(flows=20, rate=1e9 / 12000, delay=100e-6, buffer=100, alpha1=25, alpha2=50)
WIDE = Port(flows=4, rate=1e9 / 12000, delay=100e-6, buffer=100, alpha1=5, alpha2=75)
NARROW = Port(flows=20, rate=1e9 / 12000, delay=100e-6, buffer=100, alpha1=30, alpha2=45)


@pytest.mark.parametrize("port", [PORT, WIDE, Port(100, 1e10 / 12000, 1e-3, 680, 68, 170)])
def test_the_equilibrium_is_where_the_equations_rest(port):
    rest = hscc_model.equilibrium(port, port.middle)
    state = (rest.window, rest.queue)
    slopes = hscc_model.slopes(port, state, state, rest.clamped, port.kappa * rest.clamped)
    assert np.allclose(np.multiply(slopes, rest.round_trip), 0, atol=1e-9 * port.flows)
    assert 0 < rest.clamped < 1 < rest.window


def test_no_equilibrium_where_a_segment_each_is_too_much():
    assert hscc_model.equilibrium(Port(400, 1e9 / 12000, 20e-6, 85, 21, 42), 30) is None


def test_the_printed_equilibrium_solves_eq_2_and_not_eq_1():
    rest = hscc_model.printed_equilibrium(WIDE, WIDE.middle)
    assert rest.window == pytest.approx(WIDE.share(rest.queue) - rest.clamped)
    loss = WIDE.kappa * rest.window * rest.round_trip / 2
    assert rest.clamped == pytest.approx(1 / (loss - 1 / rest.window + 1))
    state = (rest.window, rest.queue)
    losses = WIDE.kappa * rest.clamped
    assert abs(hscc_model.slopes(WIDE, state, state, rest.clamped, losses)[1]) > 0.1 * WIDE.rate


def test_the_printed_equilibrium_needs_four_segments_a_flow():
    assert PORT.share(PORT.middle) < 4
    assert hscc_model.printed_equilibrium(PORT, PORT.middle) is None


@pytest.mark.parametrize("port", [PORT, WIDE])
def test_the_jacobian_is_that_of_the_equations(port):
    rest = hscc_model.equilibrium(port, port.middle)
    at = np.array([rest.window, rest.queue, rest.window, rest.queue, rest.clamped])

    def slopes(x):
        return np.array(hscc_model.slopes(port, x[:2], x[2:4], x[4], port.kappa * x[4]))

    numeric = np.empty((2, 5))
    for place in range(5):
        step = np.zeros(5)
        step[place] = 1e-5 * at[place]
        numeric[:, place] = (slopes(at + step) - slopes(at - step)) / (2 * step[place])
    linear = hscc_model.jacobian(port, rest)
    scale = np.abs(numeric).max()
    assert np.allclose(linear.now, numeric[:, :2], rtol=1e-6, atol=1e-9 * scale)
    assert np.allclose(linear.past, numeric[:, 2:4], rtol=1e-6, atol=1e-9 * scale)
    assert np.allclose(linear.gain, numeric[:, 4], rtol=1e-6)


def test_without_delay_the_matrix_is_triangular_and_hurwitz_all_over_the_grid():
    points = [(port, rest) for port, rest, _ in hscc.grid() if rest]
    assert len(points) == 1170
    for port, rest in points:
        merged = hscc_model.jacobian(port, rest).merged
        assert abs(merged[0, 1]) < 1e-9 * abs(merged[1, 0])
    assert hscc.hurwitz({}) == 1
    assert hscc.printed_hurwitz({}) == 1


def test_the_printed_conditions_let_a_share_of_time_exceed_one():
    assert 0 < hscc.printed_share({}) < 0.5


def test_roots_of_a_known_delay_equation():
    # x'(t) = -k x(t - 1) has its rightmost roots at +-i k for k = pi / 2, and at -1 twice for 1/e.
    at_limit = delay.roots(np.zeros((1, 1)), np.array([[-math.pi / 2]]), 1.0)
    assert abs(at_limit[0] - complex(0, math.copysign(math.pi / 2, at_limit[0].imag))) < 1e-9
    double = delay.roots(np.zeros((1, 1)), np.array([[-1 / math.e]]), 1.0)
    assert abs(double[0] + 1) < 1e-5


@pytest.mark.parametrize(("port", "is_stable"), [(WIDE, True), (NARROW, False)])
def test_a_disturbance_fades_or_grows_as_the_rightmost_root_predicts(port, is_stable):
    rest = hscc_model.equilibrium(port, port.middle)
    slope = 1 / (port.alpha2 - port.alpha1)
    linear = hscc_model.jacobian(port, rest)
    root = delay.roots(linear.now, linear.closed(slope), rest.round_trip)[0].real
    assert (root < 0) == is_stable
    course = hscc_time.averaged(
        port,
        duration=40 * rest.round_trip,
        step=rest.round_trip / 80,
        start=(rest.window, rest.queue * (1 + 1e-7)),
        slope=slope,
    )
    size = np.abs(course.queue - rest.queue)
    early, late = (size[80 * trip : 80 * (trip + 15)].max() for trip in (5, 20))
    assert math.log(late / early) / 15 == pytest.approx(root * rest.round_trip, rel=0.1)


def test_halving_the_step_makes_the_error_four_times_smaller():
    rest = hscc_model.equilibrium(WIDE, WIDE.middle)
    start = (rest.window * 1.2, rest.queue)

    def end(steps):
        length = rest.round_trip / steps
        course = hscc_time.averaged(
            WIDE, duration=4 * rest.round_trip, step=length, start=start, slope=0.01
        )
        return course.queue[-1]

    exact = end(800)
    errors = [abs(end(steps) - exact) for steps in (25, 50, 100)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert all(1.7 < order < 2.4 for order in orders)


def test_a_clamp_ends_only_if_a_segment_each_fits_below_the_lower_threshold():
    ends = hscc_time.integrate(PORT, hscc_time.CORRECTED)
    assert hscc_time.cycle(PORT, ends.time, ends.queue).clamped < 1
    many = Port(40, PORT.rate, PORT.delay, PORT.buffer, PORT.alpha1, PORT.alpha2)
    course = hscc_time.integrate(many, hscc_time.CORRECTED)
    lasting = hscc_time.cycle(many, course.time, course.queue)
    assert lasting.clamped == 1
    assert lasting.queue == pytest.approx(many.flows - many.rate * many.delay, rel=0.01)


def test_every_reading_changes_the_course():
    readings = [
        hscc_time.Reading(*(flag == place for flag in range(3))) for place in (None, 0, 1, 2)
    ]
    courses = [hscc_time.integrate(PORT, reading, duration=0.02) for reading in readings]
    means = {round(float(course.queue.mean()), 6) for course in courses}
    assert len(means) == len(readings)


@pytest.mark.parametrize(
    ("ticks", "intervals"), [(1, 1), (3, 1), (10, 1), (5, 10), (25, 10), (3, 4)]
)
@pytest.mark.parametrize("share", [0.8, 1.2])
def test_the_law_grows_as_its_matrix_predicts(ticks, intervals, share):
    gain = fairq_law.greatest_gain(ticks, intervals) * share
    law = Law(125e6, ticks * 1e-4, ticks * 1e-4, 1460 / gain, 1.0, 1e-4, intervals)
    assert (fairq_law.radius(law) < 1) == (share < 1)
    change = intervals * law.interval
    steps = fairq_law.iterate(
        law, [(0.0, 3)], 60 * change, total=3 * law.window(3) + 1, is_clipped=False
    )
    each = (steps.queue - law.target)[intervals - 1 :: intervals]
    matrix = fairq_law.companion(law)
    state = np.ones(len(matrix))
    linear = []
    for _ in range(60):
        state = matrix @ state
        linear.append(state[0])
    # The sample at the end of a round sees the total that many changes ago.
    behind = math.ceil(ticks / intervals - 1e-9)
    expected = np.array(([1.0] * behind + linear)[: len(each)])
    assert np.allclose(each, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_the_limit_by_bisection_is_the_known_one():
    for missed in (0, 1, 2, 9):
        law = Law(1.0, 1.0, missed + 1.0, 1.0, 1.0, 1.0, 1)
        known = 2 * math.sin(math.pi / (4 * missed + 2))
        assert fairq_law.greatest_gain(missed + 1, 1) == pytest.approx(known)
        for factor, is_stable in ((0.999, True), (1.001, False)):
            near = Law(law.rate, 1.0, missed + 1.0, 1.0, 1.0, 1.0, 1, mss=known * factor)
            assert (fairq_law.radius(near) < 1) == is_stable
    for missed, intervals in ((2, 10), (4, 10), (9, 10)):
        pairs = [intervals / missed]
        if 2 * missed < intervals:
            pairs.append(2 / (1 - 2 * missed / intervals))
        found = fairq_law.greatest_gain(missed + 1, intervals)
        assert found == pytest.approx(min(pairs), abs=1e-5)


def test_a_new_number_of_flows_does_not_move_the_total():
    law = Law(125e6, 1e-3, 5e-4, 240e3, 0.1, 1e-4, 10)
    steps = fairq_law.iterate(law, [(0.0, 2), (0.05, 4)], 0.1, total=2 * law.window(2))
    assert np.allclose(steps.queue, law.target, rtol=1e-9)
    assert steps.window[-1] == pytest.approx(law.window(4))
    assert steps.window[0] == pytest.approx(law.window(2))


def test_slow_start_ends_at_the_target():
    law = Law(125e6, 1e-3, 5e-4, 240e3, 0.1, 1e-4, 10)
    slow = fairq_law.iterate(law, [(0.0, 2)], 0.3, is_slow=True)
    fast = fairq_law.iterate(law, [(0.0, 2)], 0.3)
    reached = [float(s.time[np.argmax(s.queue >= 0.99 * law.target)]) for s in (slow, fast)]
    assert 0 < 1.5 * reached[0] < reached[1]
    assert slow.queue[-1] == pytest.approx(law.target, rel=0.01)


@pytest.mark.parametrize(
    "measure",
    [
        *(hscc.fluid_queue, hscc.fluid_period, hscc.corrected_queue, hscc.corrected_period),
        *(hscc.packet_queue, hscc.packet_period, hscc.locked_queue, hscc.locked_prediction),
        *(fairq.stable_deviation, fairq.unstable_deviation, fairq.stable_mean),
        *(fairq.ramp_packets, fairq.ramp_law),
    ],
)
def test_what_needs_a_run_that_was_left_out_has_no_number(measure):
    assert measure({}) is None


def test_siccs_control_traffic_is_as_printed():
    assert sicc.message_bytes() == 150
    assert sicc.control_traffic({}) == 240e6


def test_hcf_memory_is_that_of_its_counters():
    assert hcf.counter_bytes(32, 255) == 32, "HCF §III-C: 32 counters of 8 bits"
    assert hcf.counter_bytes(20, 1) == 2.5, "HCF §V-C, 2: a single bit per bin"
    # A bin of the core has its credits and the period that they are of, 4 bytes each.
    bins, rest = divmod(hcf.core_memory({}), 8)
    assert bins - 256 == 6, "queues, period, hash: 48 bytes"
    assert rest == 0


def test_hcf_has_no_use_for_a_second_hash_with_fewer_bins_than_flows():
    assert hcf.ideal_hashes(20, 400) == pytest.approx(0.0347, abs=1e-4)
    assert hcf.ideal_hashes(577, 400) == pytest.approx(1, abs=1e-3)


def test_hcf_starves_shorter_in_a_share_of_the_runs():
    def run(**gaps):
        results = [
            {
                "scheme": name.replace("_", "-"),
                "groups": {"block": {"longest_silence_s": {"max": longest}}},
            }
            for name, longest in gaps.items()
        ]
        return SimpleNamespace(summary={"results": results})

    runs = {
        "2": run(drop_tail=0.2, hcf=0.1, hcf_paper=0.3),
        "5": run(drop_tail=0.2, hcf=0.2, hcf_paper=0.3),
    }
    assert hcf.shorter(runs) == 0.5
    assert hcf.shorter_printed(runs) == 0


def test_a_timeout_costs_a_small_flow_nearly_all_of_its_throughput():
    size, flows = 11_500, 126
    trip, rate = hscc_timeouts.ROUND_TRIP_S, hscc_timeouts.RATE
    best = hscc_timeouts.best_throughput(size, flows)
    assert size / best == pytest.approx(2 * trip + flows * size / rate), "handshake and one flight"
    collapsed = hscc_timeouts.collapsed_throughput(size, 1, flows)
    assert size / collapsed - size / best == pytest.approx(hscc_timeouts.RTO_S)
    assert hscc_timeouts.trips(200_000) > hscc_timeouts.trips(20_000) > 2
    assert hscc_timeouts.over_trips_of_small({}) == pytest.approx(1000)
    assert hscc_timeouts.over_trips_of_large({}) == pytest.approx(0.2 / 0.24)
    alone, _, _, _, twice, _ = hscc_timeouts.collapse({})[0]["lines"]
    assert 0 < twice["y"][0] < alone["y"][0] < alone["y"][-1] < 1


def test_what_timeouts_add_is_relative_to_the_rest_of_the_completion_time():
    web = {"timeouts": 50, "flows": 100, "fct_s": {"mean": 0.25}}
    run = SimpleNamespace(summary={"results": [{"groups": {"web": web}}]})
    assert hscc_timeouts.added_websearch({"websearch": run}) == pytest.approx(0.1 / 0.15)
    assert hscc_timeouts.added_datamining({"websearch": run}) is None
    web["fct_s"] = None
    assert hscc_timeouts.added_websearch({"websearch": run}) is None


def test_the_windows_of_the_first_flow_are_drawn_for_each_scheme():
    rows = [
        (scheme, 1, "long", flow, n * 1e-3, 1460 * n, 64_000, min(1460 * n, 64_000), False)
        for scheme in ("drop-tail", "hscc")
        for flow in (0, 1)
        for n in range(20)
    ]
    windows = pl.DataFrame(rows, schema=tables.NO_WINDOWS.schema, orient="row")
    results = [{"scheme": scheme} for scheme in ("drop-tail", "hscc", "absent")]
    run = SimpleNamespace(windows=windows, summary={"results": results})
    drop_tail, hscc_panel, absent = hscc_cycle.windows({"8": run})
    assert all(len(line["x"]) == 0 for line in absent["lines"])
    assert (drop_tail["title"], hscc_panel["title"]) == ("drop-tail", "hscc")
    cwnd, rwnd, swnd = drop_tail["lines"]
    assert [line["name"] for line in (cwnd, rwnd, swnd)] == ["cwnd", "rwnd", "swnd"]
    assert list(cwnd["y"]) == list(range(20)) == list(swnd["y"])
    assert list(cwnd["x"]) == pytest.approx(list(range(20)))
