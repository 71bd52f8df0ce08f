"""LoRA adapters: how many are in use, what they hold and what they add to a step."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.layouts import Layouts
from planner.engine.memory import adapter_bytes
from planner.engine.step import total
from planner.replica.adapters import Adapted, adapted, resident_bytes
from planner.replica.candidates import Bench, Subject, bench, evaluate, judge
from planner.spec.scenario import Adapters

Subjects = Callable[..., Subject]
ROWS = [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1)]


def work(count: int, popularity: float) -> Adapted:
    weight = np.arange(1, count + 1, dtype=float) ** -popularity
    spec = Adapters(count=count, rank=16, popularity=popularity)
    return Adapted(spec, 1e8, 1e9, weight / weight.sum())


@pytest.fixture(scope="module")
def code(subject_of: Subjects) -> Bench:
    return bench(subject_of("code"), Layouts.of(ROWS), np.zeros(len(ROWS), np.int64))


@given(count=st.integers(1, 500), popularity=st.floats(0.0, 2.0), batch=st.integers(1, 2000))
def test_no_more_adapters_than_sequences_or_than_there_are(count: int, popularity: float, batch: int) -> None:
    of = work(count, popularity)
    one, here, more = of.distinct(np.array([1.0, batch, batch + 1.0]))
    assert one == pytest.approx(1.0)
    assert here <= min(batch, count) * (1 + 1e-9)
    assert here <= more * (1 + 1e-12)
    # The more even, the more different ones.
    assert here <= work(count, 0.0).distinct(np.array([float(batch)]))[0] * (1 + 1e-9)


@pytest.mark.parametrize(("count", "popularity", "batch"), [(300, 1.0, 64), (20, 0.0, 10), (50, 1.5, 200)])
def test_distinct_adapters_as_drawn(count: int, popularity: float, batch: int) -> None:
    of = work(count, popularity)
    drawn = np.random.default_rng(2).choice(count, (4000, batch), p=of.popularity)
    number = np.array([len(set(row)) for row in drawn.tolist()])
    got = of.distinct(np.array([float(batch)]))[0]
    assert got == pytest.approx(number.mean(), abs=4.0 * number.std() / np.sqrt(len(number)))


def test_shapes_are_kept_and_rows_stand_for_themselves() -> None:
    of = work(100, 1.0)
    batch = np.array([[1.0, 8.0], [64.0, 8.0], [2.0, 500.0]])
    got = of.distinct(batch)
    assert got.shape == batch.shape
    for row in range(3):
        np.testing.assert_array_equal(got[row], of.distinct(batch[row]))


def test_reading_differs_by_row_where_batches_do(code: Bench) -> None:
    assert code.adapters is not None
    batch = np.array([[1.0, 16.0], [64.0, 16.0], [4.0, 16.0]])
    got = code.adapters.reading(code.machine, batch)
    rate = code.machine.chip.decode_attention.memory * code.machine.chip.bandwidth
    size = adapter_bytes(code.machine.model, 16, "all")
    np.testing.assert_allclose(got, code.adapters.distinct(batch) * size / rate / np.array([[1], [2], [1]]))


def test_a_step_with_adapters_costs_what_its_table_says(code: Bench, subject_of: Subjects) -> None:
    bare = subject_of("code")
    plain = bench(
        Subject(bare.model, bare.checkpoint, bare.chip, bare.engine, bare.traffic),
        Layouts.of(ROWS),
        np.zeros(len(ROWS), np.int64),
    )
    assert plain.adapters is None
    assert code.adapters is not None
    assert (code.passes.tokens > plain.passes.tokens).all()
    assert (code.passes.decode > plain.passes.decode).all()
    tokens = np.full((len(ROWS), 1), 64.0)
    operator = code.adapters.operators(code.machine, tokens, tokens)
    assert (total(operator) > code.adapters.reading(code.machine, tokens)).all()
    rank16 = 2 * code.adapters.size / 2.0
    assert code.adapters.flops == pytest.approx(rank16)


def test_each_accelerator_holds_its_shard_of_its_stage(code: Bench) -> None:
    """Two accelerators hold half each, whether cut or dealt out by layer."""
    limit = np.full(3, 64)
    of = judge(code, "mixed", (np.arange(3), np.full(3, 2048), limit))
    assert code.adapters is not None
    whole = resident_bytes(code.adapters, limit)
    np.testing.assert_allclose(of.memory.adapters, whole / [1, 2, 2])


def test_adapters_leave_less_for_the_cache(subject_of: Subjects) -> None:
    of = subject_of("code")
    bare = Subject(of.model, of.checkpoint, of.chip, of.engine, of.traffic)
    with_them, without = evaluate(of, "mixed", 4), evaluate(bare, "mixed", 4)
    assert (with_them.memory.kv <= without.memory.kv).all()
    assert (with_them.operating.saturation[with_them.rejected == 0]).max() < without.operating.saturation.max()


def test_counts_follow_the_machine(code: Bench) -> None:
    one = adapted(code.machine, Adapters(count=3, rank=8, targets="attention", popularity=0.0))
    np.testing.assert_allclose(one.popularity, 1 / 3)
    assert one.size == adapter_bytes(code.machine.model, 8, "attention")
    assert one.flops == one.size
