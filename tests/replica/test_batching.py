"""Continuous batching: the closed form is the fixed point, and what it sustains moves the right way."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engine.layouts import Layouts
from planner.numeric import interpolate_rows
from planner.replica.batching import FULL, Operating, Tables, operating, spot, tables, tpot
from planner.replica.candidates import Bench, Replicas, Role, Subject, bench, judge
from planner.replica.passes import BATCHES, rank_batch

Benches = Callable[..., Bench]
Made = Callable[..., Replicas]

NAMES = ["chat", "agents", "code", "nightly"]
RUNNING = [(name, engine) for name in NAMES for engine in ("vllm", "sglang", "tensorrt-llm")]


def fixed_point(step: Callable[[float], float], stall: float, rate: float, steps: float) -> float:
    """Solve b = rate * steps * TPOT(b) by bisection; the replica steps for others while prompts take their share."""

    def excess(b: float) -> float:
        return b - rate * steps * step(b) / (1.0 - rate * stall)

    low, high = 1.0, float(BATCHES[-1])
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle) < 0.0 else (low, middle)
    return low


@given(base=st.floats(1e-3, 0.05), slope=st.floats(1e-6, 1e-3), stall=st.floats(0.0, 0.5), steps=st.floats(1.0, 2000.0))
def test_the_closed_form_is_the_fixed_point(base: float, slope: float, stall: float, steps: float) -> None:
    """At every batch of the grid: the rate that the table gives keeps just as many sequences decoding."""
    step = base + slope * BATCHES
    rate = BATCHES / (steps * step + BATCHES * stall)
    for b, here in zip(BATCHES, rate, strict=True):
        assert here * stall < 1.0
        assert fixed_point(lambda x: base + slope * x, stall, here, steps) == pytest.approx(b, rel=1e-6)
        # Little's law, with the time per output token that the rest of the model uses.
        each = float(tpot(np.array(base + slope * b), np.array(stall), np.array(here)))
        if here * stall < 0.999:
            assert here * steps * each == pytest.approx(b, rel=1e-6)
            assert each == pytest.approx(base + slope * b + b * stall / steps, rel=1e-6)


@pytest.mark.parametrize(("name", "engine"), RUNNING)
def test_tables_hold_the_closed_form_of_their_parts(replicas_of: Made, name: str, engine: str) -> None:
    of = replicas_of(name, "mixed", engine)
    steps = of.subject.traffic.steps
    exact = BATCHES / (steps * of.tables.step + BATCHES * of.tables.stall)
    np.testing.assert_allclose(of.tables.rate, np.maximum.accumulate(exact, axis=1))
    assert (np.diff(of.tables.rate, axis=1) >= 0.0).all()
    assert (np.diff(of.tables.step, axis=1) >= 0.0).all()
    assert (of.tables.stall >= 0.0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ["mixed", "decode"])
def test_the_batch_of_a_rate_is_where_the_rate_of_a_batch_is(replicas_of: Made, name: str, role: Role) -> None:
    of = replicas_of(name, role)
    for share in (0.1, 0.5, 0.9, 1.0):
        wanted = share * of.operating.saturation
        batch = of.operating.at(wanted)
        assert (batch[share * of.operating.saturation <= of.operating.tables.rate[:, -1]] < np.inf).all()
        inside = (batch > 1.0) & np.isfinite(batch)
        got = interpolate_rows(BATCHES, of.operating.tables.rate, np.where(inside, batch, 1.0))
        np.testing.assert_allclose(got[inside], wanted[inside], rtol=1e-9)
        assert (batch[inside] <= of.operating.batch_limit[inside] * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(less=st.floats(0.05, 1.0))
def test_more_memory_never_sustains_less(replicas_of: Made, name: str, less: float) -> None:
    of = replicas_of(name)
    cap = np.minimum(of.fits, of.limit * 1.0)
    whole, part = (operating(of.tables, of.pair, np.minimum(one, BATCHES[-1])) for one in (cap, cap * less))
    assert (part.saturation <= whole.saturation * (1 + 1e-12)).all()
    assert (part.batch_limit <= whole.batch_limit).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_replica_sustains_more_than_its_memory_or_its_prompts_allow(replicas_of: Made, name: str) -> None:
    of = replicas_of(name)
    op = of.operating
    assert (op.batch_limit <= np.minimum(of.fits, of.limit * of.machine.layouts.dp[of.row]) * (1 + 1e-12)).all()
    # Prompts ride for at most FULL of the time.
    waiting = interpolate_rows(BATCHES, op.tables.served, np.maximum(op.batch_limit, 1.0))
    assert (op.saturation * waiting <= FULL * 1.02).all()


def test_where_prompts_fill_a_lane_before_one_sequence_decodes_they_bound_the_rate() -> None:
    step, served = np.full((1, len(BATCHES)), 1e-6), np.full((1, len(BATCHES)), 2.0)
    slow = Tables(step, served, np.maximum.accumulate(BATCHES / (2.0 * step + BATCHES * served), axis=1), served)
    assert operating(slow, np.zeros(1, np.int64), np.full(1, 256.0)).saturation[0] == pytest.approx(FULL / 2.0)


def test_room_for_less_than_one_sequence_serves_in_proportion() -> None:
    step = np.full((1, len(BATCHES)), 0.02)
    zero = np.zeros_like(step)
    free = Tables(step, zero, BATCHES / (100.0 * step), zero)
    point: Operating = operating(free, np.zeros(2, np.int64), np.array([1.0, 0.5]))
    assert point.saturation.tolist() == [0.5, 0.25]


def test_without_prefill_a_replica_only_decodes(bench_of: Benches) -> None:
    of = bench_of("chat")
    row = np.array([0, 1])
    alone = tables(of.passes, row, None, 100.0)
    np.testing.assert_allclose(alone.rate, BATCHES / (100.0 * of.passes.decode[row]))
    assert (alone.stall == 0.0).all()
    assert (alone.served == 0.0).all()


@given(st.lists(st.floats(0.1, 10_000.0), min_size=1, max_size=8))
def test_a_spot_on_the_grid_picks_as_interpolation_does(batches: list[float]) -> None:
    batch = np.array(batches)
    table = np.cumsum(np.arange(1.0, len(BATCHES) + 1.0)) * np.arange(1.0, len(batch) + 1.0)[:, np.newaxis]
    rows = np.arange(len(batch))
    want = [np.interp(b, BATCHES, row) for b, row in zip(batch, table, strict=True)]
    np.testing.assert_allclose(spot(batch).pick(table, rows), want)
    np.testing.assert_allclose(spot(batch).pick(np.stack([table, 2 * table], axis=2), rows)[:, 1], 2 * np.array(want))


def in_layouts(subject: Subject, rows: list[tuple[int, int, int, int]]) -> Bench:
    return bench(subject, Layouts.of(rows), np.zeros(len(rows), np.int64))


def test_a_pipeline_runs_a_micro_batch_in_each_stage(subject_of: Callable[..., Subject]) -> None:
    """Two stages: a token takes as long as one of half the sequences through all layers, and one more hand-over."""
    of = in_layouts(subject_of("chat"), [(2, 1, 1, 1), (2, 2, 1, 1)])
    rank = rank_batch(of.machine, BATCHES * np.ones((2, 1)))
    np.testing.assert_array_equal(rank[0], BATCHES)
    np.testing.assert_array_equal(rank[1], np.maximum(BATCHES / 2, 1.0))
    halved = np.interp(BATCHES / 2, BATCHES, of.passes.decode[0])
    hop = of.passes.decode[1] - halved
    assert (hop[2:] > 0.0).all()
    assert (hop[2:] < 0.002).all()


def test_the_fullest_rank_sets_the_pace(subject_of: Callable[..., Subject]) -> None:
    of = in_layouts(subject_of("agents"), [(1, 1, 8, 8), (8, 1, 1, 8)])
    rank = rank_batch(of.machine, BATCHES * np.ones((2, 1)))
    assert (rank[0] >= np.maximum(BATCHES / 8, 1.0)).all()
    assert (rank[0] <= BATCHES).all()
    np.testing.assert_array_equal(rank[1], BATCHES)


@pytest.mark.parametrize(("name", "engine"), RUNNING)
@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
def test_columns_equal_a_loop_over_rows(
    bench_of: Benches, replicas_of: Made, name: str, engine: str, role: Role
) -> None:
    whole = replicas_of(name, role, engine)
    of = bench_of(name, engine)
    for index in np.linspace(0, len(whole) - 1, 12).astype(int):
        one = judge(of, role, (whole.row[[index]], whole.budget[[index]], whole.limit[[index]]))
        for column in ("fits", "rejected", "size", "stages"):
            assert getattr(one, column)[0] == getattr(whole, column)[index]
        assert one.memory.kv[0] == whole.memory.kv[index]
        np.testing.assert_allclose(one.tables.rate[0], whole.tables.rate[whole.pair[index]], rtol=1e-13)
        np.testing.assert_allclose(one.operating.saturation[0], whole.operating.saturation[index], rtol=1e-13)
        np.testing.assert_allclose(one.operating.batch_limit[0], whole.operating.batch_limit[index], rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_the_longest_request_fits_in_every_accepted_candidate(bench_of: Benches, replicas_of: Made, name: str) -> None:
    of, whole = bench_of(name), replicas_of(name)
    accepted = whole.rejected == 0
    assert accepted.any()
    assert (of.longest[whole.row][accepted] <= whole.memory.kv[accepted]).all()
    # The cached tokens of as many sequences as fit leave two deviations free.
    ranks = whole.machine.layouts.dp[whole.row]
    each = whole.fits / ranks
    used = each * of.mean[whole.row] + 2.0 * of.spread[whole.row] * np.sqrt(each)
    np.testing.assert_allclose(used[accepted], whole.memory.kv[accepted])


def test_reserving_admits_by_the_largest_output(bench_of: Benches) -> None:
    lazy, careful = bench_of("chat", "vllm"), bench_of("chat", "tensorrt-llm")
    assert careful.subject.engine.scheduling.admission == "reserve"
    assert (careful.mean > lazy.mean).all()


def test_rejected_candidates_keep_their_reasons(replicas_of: Made) -> None:
    of = replicas_of("chat")
    marked = of.with_rejected(of.rejected | 1)
    assert (marked.rejected & 1 == 1).all()
    assert len(marked) == len(of)
    assert replace(marked, rejected=of.rejected).rejected is of.rejected
