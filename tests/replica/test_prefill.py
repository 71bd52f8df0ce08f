"""Prefill: chunks add up to the prompt, and their times to the time of the prompt."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.layouts import Layouts
from planner.engine.step import body, head, prefill_attention, total
from planner.replica.candidates import Bench, Subject, bench
from planner.replica.passes import BATCHES
from planner.replica.prefill import latency, prefill

ROWS = [(2, 1, 1, 1), (4, 1, 1, 1), (4, 2, 1, 1), (8, 1, 1, 1)]
BUDGETS = [512, 2048, 16_384]
Subjects = Callable[..., Subject]


@pytest.fixture(scope="module")
def chat(subject_of: Subjects) -> Bench:
    return bench(subject_of("chat"), Layouts.of(ROWS), np.zeros(len(ROWS), np.int64))


def grid() -> tuple[np.ndarray, np.ndarray]:
    """Each layout with each token budget."""
    return np.repeat(np.arange(len(ROWS)), len(BUDGETS)), np.tile(BUDGETS, len(ROWS))


@pytest.mark.parametrize("mixed", [True, False])
def test_chunks_cover_the_prompt_and_no_more(chat: Bench, mixed: bool) -> None:  # noqa: FBT001 - a parameter
    traffic = chat.subject.traffic
    row, budget = grid()
    of = prefill(chat.passes, row, budget, traffic, mixed=mixed)
    fresh = traffic.input.value - traffic.cached
    taken = chat.passes.rank_tokens[row] if mixed else np.zeros((len(row), len(BATCHES)))
    room = np.maximum(budget[:, np.newaxis] - taken, 1.0)[:, :, np.newaxis]
    assert (of.chunks * room >= fresh * (1 - 1e-12)).all()
    assert ((of.chunks - 1) * room < fresh).all()


def test_separate_chunks_sum_to_the_prompt(chat: Bench) -> None:
    """Chunk by chunk, each a pass of its own with one row of the head, and the attention of the whole prompt."""
    traffic = chat.subject.traffic
    m = chat.machine
    row, budget = grid()
    of = prefill(chat.passes, row, budget, traffic, mixed=False)
    top = head(m, np.ones(1)).total
    for place in range(len(row)):
        for bin_, fresh in enumerate(traffic.input.value - traffic.cached):
            left, time = float(fresh), 0.0
            while left > 0:
                taken = min(left, float(budget[place]))
                time += float(chat.passes.linear(row[[place]], np.array([[taken]]))[0, 0] + top[row[place], 0])
                left -= taken
            start, tokens = traffic.cached[[bin_]], np.array([fresh])
            time += float(prefill_attention(m, start, tokens, np.array([[budget[place]]]), row[[place]]).total[0, 0])
            np.testing.assert_allclose(of.added[place, :, bin_], time, rtol=1e-9)
    np.testing.assert_array_equal(of.work_mean, of.added_mean)


def test_a_prompt_in_one_chunk_adds_the_difference_of_two_passes(chat: Bench) -> None:
    traffic = chat.subject.traffic
    m = chat.machine
    row = np.arange(len(ROWS))
    budget = np.full(len(ROWS), 65_536)
    of = prefill(chat.passes, row, budget, traffic, mixed=True)
    fresh = traffic.input.value - traffic.cached
    assert (of.chunks == 1.0).all()
    attention = prefill_attention(m, traffic.cached, fresh, budget[:, np.newaxis]).total
    for place, b in enumerate(chat.passes.rank_tokens[0]):
        rank = np.full((len(ROWS), 1), b) if (chat.passes.rank_tokens[:, place] == b).all() else None
        if rank is None:
            continue
        exact = total(body(m, rank + fresh)) - total(body(m, rank)) + attention
        np.testing.assert_allclose(of.added[:, place], exact, rtol=0.05)


def test_riding_costs_no_more_than_passes_of_its_own(chat: Bench) -> None:
    """A rider reads no weights again: the step it rides in has read them."""
    row, budget = grid()
    mixed, separate = (prefill(chat.passes, row, budget, chat.subject.traffic, mixed=one) for one in (True, False))
    room = budget[:, np.newaxis] > 2 * chat.passes.rank_tokens[row]
    assert (mixed.added <= separate.added * 1.02)[room].all()


@pytest.mark.parametrize("mixed", [True, False])
def test_moments_are_those_of_the_bins(chat: Bench, mixed: bool) -> None:  # noqa: FBT001 - a parameter
    row, budget = grid()
    of = prefill(chat.passes, row, budget, chat.subject.traffic, mixed=mixed)
    np.testing.assert_allclose(of.added_mean, np.average(of.added, axis=2, weights=of.shares))
    assert (of.added_second >= of.added_mean**2 * (1 - 1e-12)).all()
    assert (of.work_second >= of.work_mean**2 * (1 - 1e-12)).all()
    # A prompt keeps later ones waiting at least as long as it keeps the others decoding.
    assert (of.work_mean >= of.added_mean * (1 - 1e-12)).all()
    assert of.lanes.tolist() == [float(dp * pp) for _, pp, dp, _ in ROWS for _ in BUDGETS]


@pytest.mark.parametrize("mixed", [True, False])
def test_longer_prompts_take_longer_and_larger_budgets_fewer_chunks(
    chat: Bench,
    mixed: bool,  # noqa: FBT001 - a parameter
) -> None:
    row, budget = grid()
    of = prefill(chat.passes, row, budget, chat.subject.traffic, mixed=mixed)
    assert (np.diff(of.added, axis=2) >= -1e-12).all()
    by_budget = of.chunks.reshape(len(ROWS), len(BUDGETS), len(BATCHES), -1)
    assert (np.diff(by_budget, axis=1) <= 0.0).all()


def test_rows_are_chosen_without_copying_tables(chat: Bench) -> None:
    row, budget = grid()
    of = prefill(chat.passes, row, budget, chat.subject.traffic, mixed=True)
    some = of.rows(np.array([3, 1]))
    assert some.row.tolist() == [3, 1]
    assert some.lanes.tolist() == of.lanes[[3, 1]].tolist()
    assert some.added is of.added
    assert some.rows(np.array([1])).row.tolist() == [1]


@pytest.mark.parametrize("mixed", [True, False])
def test_columns_equal_a_loop_over_rows(chat: Bench, mixed: bool) -> None:  # noqa: FBT001 - a parameter
    row, budget = grid()
    whole = prefill(chat.passes, row, budget, chat.subject.traffic, mixed=mixed)
    for place in range(len(row)):
        one = prefill(chat.passes, row[[place]], budget[[place]], chat.subject.traffic, mixed=mixed)
        np.testing.assert_array_equal(one.added[0], whole.added[place])
        np.testing.assert_array_equal(one.chunks[0], whole.chunks[place])
        np.testing.assert_allclose(one.work_second[0], whole.work_second[place], rtol=1e-13)


@given(chunks=st.integers(1, 200), step=st.floats(0.0, 0.1), added=st.floats(1e-4, 10.0), stages=st.integers(1, 16))
def test_a_pipeline_shortens_a_prompt_by_at_most_its_stages(
    chunks: int, step: float, added: float, stages: int
) -> None:
    count, whole = np.array(float(chunks)), chunks * step + added
    time = float(latency(count, np.array(step), np.array(added), np.array(float(stages))))
    assert whole / stages <= time * (1 + 1e-12)
    assert time <= whole * (1 + 1e-12)
    if chunks == 1 or stages == 1:
        assert time == pytest.approx(whole)
    # Chunks of T / p follow each other through p stages: (C + p - 1) T / (C p) of the whole.
    assert time == pytest.approx((chunks + stages - 1) * whole / chunks / stages)
