"""The steady state of a pool: waits against a simulation, and what holds at any rate."""

import numpy as np
import pytest

from planner.fleet.waiting import Rows, Steady, delayed, settled, shared_queue, slot_wait, steady
from planner.numeric import Floats
from planner.replica.candidates import Role


def lindley(rate: float, service: Floats, shares: Floats, seed: int) -> Floats:
    """Waits of requests at one server, first come first served, by Lindley's recursion."""
    rng = np.random.default_rng(seed)
    count = 400_000
    gaps = rng.exponential(1.0 / rate, count)
    work = rng.choice(service, count, p=shares)
    ahead = np.cumsum(work[:-1] - gaps[1:])
    total = np.concatenate([[0.0], ahead])
    return total - np.minimum.accumulate(total)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_lane_waits_as_simulated(one_lane: Rows, load: float) -> None:
    work = one_lane.work
    assert work is not None
    row = work.row[0]
    rate = load / float(work.work_mean[row, 0])
    state = steady(one_lane, np.array([rate]), np.ones(1, np.int64), 1.0)
    waits = np.concatenate([lindley(rate, work.added[row, 0], work.shares, seed) for seed in range(4)])
    assert state.wait[0] == pytest.approx(waits.mean(), rel=0.05)
    assert state.waits[0] == pytest.approx((waits > 1e-9).mean(), rel=0.05)


def test_one_server_is_not_pooled() -> None:
    load = np.linspace(0.01, 0.99, 7)
    np.testing.assert_allclose(shared_queue(load, np.ones(7)), 1.0, rtol=1e-12)


def test_more_servers_wait_less_at_the_same_load() -> None:
    servers = np.arange(1.0, 65.0)
    for load in (0.2, 0.7, 0.95):
        assert (np.diff(shared_queue(np.full(64, load), servers)) < 0).all()


def test_a_free_slot_is_nearly_sure_far_below_the_limit_and_rare_just_below_it() -> None:
    waits, _ = slot_wait(np.array([256.0, 256.0]), np.array([64.0, 255.9]), np.ones(2), 1.0)
    assert waits[0] < 1e-6
    assert waits[1] > 0.9


@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
def test_nothing_gets_shorter_when_more_arrives(rows: dict[Role, Rows], role: Role) -> None:
    of = rows[role]
    n = len(of.stages)
    states = [steady(of, share * of.op.saturation, np.ones(n, np.int64), 1.5) for share in np.linspace(0.05, 1.3, 26)]
    for name in ("wait", "waits", "step", "tpot", "batch"):
        columns = np.array([getattr(state, name) for state in states])
        assert (np.diff(columns, axis=0) >= -1e-9 * np.abs(columns[1:])).all(), name


@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
def test_rows_do_not_see_each_other(rows: dict[Role, Rows], role: Role) -> None:
    of = rows[role]
    n = len(of.stages)
    rate, count = 0.7 * of.op.saturation * np.arange(1, n + 1), np.arange(1, n + 1)
    whole = steady(of, rate, count, 2.0)
    for row in range(n):
        index = np.array([row])
        alone: Steady = steady(of.take(index), rate[index], count[index], 2.0)
        for name in ("base", "wait", "waits", "step", "spread", "tpot", "batch", "overloaded"):
            np.testing.assert_allclose(getattr(whole, name)[index], getattr(alone, name), rtol=1e-12, err_msg=name)


def test_beyond_saturation_a_pool_is_overloaded_and_its_wait_grows_with_the_excess(rows: dict[Role, Rows]) -> None:
    of = rows["mixed"]
    n = len(of.stages)
    below, above, far = (steady(of, k * of.op.saturation, np.ones(n, np.int64), 1.0) for k in (0.99, 1.2, 1.4))
    assert not below.overloaded.any()
    assert above.overloaded.all()
    assert (above.waits == 1.0).all()
    np.testing.assert_allclose(far.wait - above.wait, 0.2 * 10.0 / 2.0, rtol=1e-6)


def test_bursts_make_waiting_likelier_and_poisson_arrivals_see_the_load() -> None:
    load = np.linspace(0.05, 0.95, 10)
    assert delayed(load, np.ones(10), 1.0) == pytest.approx(load)
    seen = [delayed(load, np.full(10, 8.0), bursts) for bursts in (1.0, 2.0, 4.0, 16.0)]
    assert (np.diff(seen, axis=0) > 0).all()
    assert (np.array(seen) < 1.0).all()
    # Simulated: 0.458 with Poisson arrivals, 0.694 with ca^2 = 4.
    assert delayed(np.array([0.8]), np.array([8.0]), 1.0)[0] == pytest.approx(0.458, rel=0.1)
    assert delayed(np.array([0.8]), np.array([8.0]), 4.0)[0] == pytest.approx(0.694, rel=0.1)


@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
def test_a_short_busy_spell_is_no_steady_state(rows: dict[Role, Rows], role: Role) -> None:
    """Where the rate has risen only now, batch and wait lie between those before it and those of staying so."""
    of = rows[role]
    n = len(of.stages)
    calm, busy = 0.6 * of.op.saturation, 0.95 * of.op.saturation
    one = np.ones(n, np.int64)
    before, spell, after = (
        steady(of, rate, one, 1.5, usual) for rate, usual in ((calm, None), (busy, calm), (busy, None))
    )
    assert (spell.wait <= after.wait * (1.0 + 1e-9)).all()
    assert (spell.batch <= after.batch * (1.0 + 1e-9)).all()
    assert (spell.batch >= before.batch * (1.0 - 1e-9)).all()
    rate = settled(of, busy, calm)
    assert ((rate >= calm * (1.0 - 1e-9)) & (rate <= busy * (1.0 + 1e-9))).all()
