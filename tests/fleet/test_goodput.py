"""Goodput shares: probabilities, monotone, and close to what a simulation of the same model gives."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from planner.fleet.goodput import (
    fast_bursts,
    idle,
    idle_shares,
    shares,
    stalls,
    states,
    tpot_mean,
    tpot_share,
    ttft_share,
    workload_bins,
)
from planner.fleet.waiting import Rows, Steady
from planner.numeric import Floats
from planner.replica.candidates import Role
from planner.spec.scenario import Lengths
from planner.workload.blend import Blend
from planner.workload.stats import Bins, bins

ROLES: tuple[Role, ...] = ("mixed", "prefill", "decode")


def promised(rows: Rows, ttft: float, tpot: float) -> Rows:
    """The same pools under other limits."""
    work = replace(rows.traffic.workloads[0], ttft=ttft, tpot=tpot)
    return replace(rows, traffic=replace(rows.traffic, workloads=(work,)))


def quicker(rows: Rows, factor: float) -> Rows:
    """The same pools with another peak rate."""
    return replace(rows, traffic=replace(rows.traffic, peak_rate=rows.traffic.peak_rate * factor))


def state(**columns: float) -> Steady:
    """One row with the given columns, the others at rest."""
    rest = {item.name: np.zeros(1) for item in fields(Steady)} | {"overloaded": np.zeros(1, bool)}
    return Steady(
        **(rest | {"spread": np.full(1, 1e-9)} | {name: np.array([value]) for name, value in columns.items()})
    )


@pytest.mark.parametrize("role", ROLES)
@settings(max_examples=25)
@given(ttft=st.floats(0.03, 2.0), tpot=st.floats(0.005, 0.08), count=st.integers(1, 12), factor=st.floats(0.2, 8.0))
def test_a_share_is_a_probability_and_moves_the_right_way(
    rows: dict[Role, Rows], role: Role, ttft: float, tpot: float, count: int, factor: float
) -> None:
    of = quicker(promised(rows[role], ttft, tpot), factor)
    n = len(of.stages)
    here = shares(of, np.full(n, count))
    assert ((here >= 0.0) & (here <= 1.0)).all()
    slack = 1e-9
    # Where even an idle step is too long, a share within it is chance; sizing rejects such candidates before.
    possible = idle_shares(of)[1] > 0.0
    # The slope of a step over its batch is read off a table in pieces, which shifts a tenth of a per cent.
    assert (shares(of, np.full(n, count + 1)) >= here - 1e-3)[possible].all()
    assert (shares(promised(of, ttft * 1.3, tpot), np.full(n, count)) >= here - slack).all()
    assert (shares(promised(of, ttft, tpot * 1.3), np.full(n, count)) >= here - slack).all()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_higher_rate_never_raises_a_share(rows: dict[Role, Rows], role: Role, count: int) -> None:
    of = rows[role]
    n = len(of.stages)
    columns = np.array([shares(quicker(of, factor), np.full(n, count)) for factor in np.geomspace(0.1, 10.0, 40)])
    assert (np.diff(columns, axis=0) <= 1e-9).all()


@pytest.mark.parametrize("role", ROLES)
def test_columns_equal_a_loop_over_rows(rows: dict[Role, Rows], role: Role) -> None:
    of = rows[role]
    count = np.arange(len(of.stages)) % 3 + 1
    whole = shares(of, count)
    for row in range(len(count)):
        index = np.array([row])
        np.testing.assert_allclose(whole[index], shares(of.take(index), count[index]), rtol=1e-12)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("scale", [0.7, 1.5])
def test_times_k_as_long_are_rates_k_as_high_with_limits_over_k(
    rows: dict[Role, Rows], role: Role, scale: float
) -> None:
    of = rows[role]
    count = np.full(len(of.stages), 3)
    work = of.traffic.workloads[0]
    assert work.ttft is not None
    assert work.tpot is not None
    longer = shares(of, count, scale=scale)
    # The same rates, k as high: their variance grows with k^2, so the dispersion less 1 grows with k.
    rough = 1.0 + (of.traffic.dispersion - 1.0) * scale
    traffic: Blend = replace(of.traffic, peak_rate=of.traffic.peak_rate * scale, dispersion=rough)
    moved = promised(replace(of, traffic=traffic), work.ttft / scale, work.tpot / scale)
    if fast_bursts(traffic) == fast_bursts(of.traffic):
        np.testing.assert_allclose(shares(moved, count), longer, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_allclose(shares(moved, count), longer, atol=0.02)


def test_at_low_load_the_first_token_is_as_late_as_its_prompt_is_long(one_lane: Rows) -> None:
    of = quicker(one_lane, 1e-6)
    share, part, _ = workload_bins(of.traffic, 0)
    base = idle(of).base[0, part]
    for limit in np.quantile(base, [0.1, 0.5, 0.9]):
        got = shares(promised(of, float(limit) * (1 + 1e-9), 1.0), np.ones(1, np.int64))
        assert got[0, 0] == pytest.approx(share[base <= limit].sum(), abs=1e-5)
        first, _ = idle_shares(promised(of, float(limit) * (1 + 1e-9), 1.0))
        assert first[0] == pytest.approx(got[0, 0], abs=1e-5)


def test_late_first_tokens_are_those_that_wait_too_long() -> None:
    """Half of the requests wait, exponentially; one input length with a known time of its own."""
    one = replace(state(wait=0.1, waits=0.5), base=np.array([[0.2]]))
    for limit in (0.1, 0.2, 0.3, 0.7):
        want = 0.0 if limit < 0.2 else 1.0 - 0.5 * np.exp(-(limit - 0.2) * 5.0)
        got = ttft_share(one, limit, np.ones(1), slice(0, 1), np.zeros((1, 1)))
        assert got[0] == pytest.approx(want, abs=1e-9)


def test_without_stalls_tpot_is_a_step_at_the_decode_step() -> None:
    output = Bins(value=np.array([1.0, 2.0, 300.0]), share=np.array([0.2, 0.3, 0.5]))
    one = state(step=0.02, tpot=0.02)
    assert tpot_share(one, 0.0199, output)[0] == pytest.approx(0.2)  # outputs of one token meet any limit
    assert tpot_share(one, 0.0201, output)[0] == pytest.approx(1.0)


def test_a_decode_pool_is_late_by_its_batch_alone(rows: dict[Role, Rows]) -> None:
    """No prompt ever stalls it, so its share is that of the decode step, which moves with the batch."""
    of = rows["decode"]
    n = len(of.stages)
    seen, steps = states(of, np.full(n, 2))
    assert (steps.stalls == 0.0).all()
    output = of.traffic.workloads[0].output
    for limit in (0.9, 1.0, 1.1):
        bound = limit * float(steps.step[0])
        want = np.where(steps.overloaded, 0.0, ndtr((bound - steps.step) / steps.spread))
        want = want * output.share[output.value > 1.0].sum() + np.where(
            steps.overloaded, 0.0, output.share[output.value <= 1.0].sum()
        )
        got = shares(promised(of, 1.0, bound), np.full(n, 2))[:, 0]
        np.testing.assert_allclose(got, seen @ want.reshape(len(seen), n), atol=1e-9)


def simulated(one: Steady, tokens: int, prompts: Bins) -> Floats:
    """Mean time per token of requests, from drawn stalls: a Poisson number, each as long as a drawn prompt."""
    rng = np.random.default_rng(5)
    count = rng.poisson(float(one.stalls[0] * one.tpot[0]) * tokens, 200_000)
    drawn = rng.choice(prompts.value, int(count.sum()), p=prompts.share)
    total = np.bincount(np.repeat(np.arange(len(count)), count), drawn, minlength=len(count))
    return np.asarray(one.step[0] + total / tokens)


@pytest.mark.parametrize("tokens", [2, 10, 60, 400])
@pytest.mark.parametrize("pace", [0.5, 2.0, 8.0, 16.0])
def test_stalls_are_as_simulated_within_two_points_where_promises_lie(tokens: int, pace: float) -> None:
    prompts = bins(Lengths(p50=800, p90=2500)).scaled(2e-5)
    step = 0.02
    tpot = step / (1.0 - pace * prompts.mean)
    one = state(step=step, tpot=tpot, stalls=pace, stall=prompts.mean, stall_second=prompts.second)
    output = Bins(value=np.array([tokens + 1.0]), share=np.ones(1))
    drawn = simulated(one, tokens, prompts)
    for level, points in ((0.8, 0.03), (0.9, 0.03), (0.95, 0.02), (0.99, 0.02)):
        limit = float(np.quantile(drawn, level)) * (1.0 + 1e-6)
        assert float(tpot_share(one, limit, output)[0]) == pytest.approx((drawn <= limit).mean(), abs=points)


def test_the_moving_rate_is_seen_by_requests_not_by_the_clock(rows: dict[Role, Rows]) -> None:
    of = rows["mixed"]
    seen, state_of = states(of, np.full(len(of.stages), 2))
    assert seen.sum() == pytest.approx(1.0)
    assert len(state_of.wait) == len(seen) * len(of.stages)
    assert fast_bursts(of.traffic) >= 1.0


def test_prompts_behind_a_request_count_once_and_weigh_more_on_short_answers() -> None:
    """Two behind and one in ten seconds beside: a short answer feels both, a long one a third more."""
    output = Bins(value=np.array([1.0, 11.0, 1001.0]), share=np.full(3, 1 / 3))
    at = state(step=0.01, stall=0.05, stalls=0.1, tpot=0.01, behind=2.0)
    count = stalls(at, output)
    assert count[0, 1:] == pytest.approx([2.01, 3.0])
    mean = tpot_mean(at, output)[0]
    assert mean == pytest.approx(0.01 + 0.05 * (2.01 / 10 + 3.0 / 1000) / 2), "one token has no time per token"


def test_no_more_prompts_fit_beside_a_request_than_its_steps_hold() -> None:
    output = Bins(value=np.array([11.0]), share=np.ones(1))
    assert stalls(state(stalls=0.1, tpot=0.01, behind=50.0, fills=0.5), output)[0, 0] == pytest.approx(20.0)
    assert stalls(state(stalls=0.1, tpot=0.01, behind=50.0, fills=2.0), output)[0, 0] == pytest.approx(5.0)
