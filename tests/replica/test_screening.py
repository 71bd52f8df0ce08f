"""Screening keeps what may be best, and says of the rest that another is better."""

from collections.abc import Callable

import numpy as np
import pytest

from planner.engine.reasons import Reason
from planner.replica.batching import tpot
from planner.replica.candidates import Replicas
from planner.replica.passes import BATCHES
from planner.replica.screening import BUDGETS_KEPT, FAR, LIMITS_KEPT, mean_capacity, survivors

Made = Callable[..., Replicas]
NAMES = ["chat", "agents", "code"]
ENOUGH = 1000


def most(of: Replicas) -> np.ndarray:
    return np.full(len(of), ENOUGH)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
def test_no_candidate_carries_more_than_saturation_or_its_limit_of_tpot(
    replicas_of: Made, name: str, role: str
) -> None:
    of = replicas_of(name, role)
    capacity = mean_capacity(of)
    assert (capacity >= 0.0).all()
    assert (capacity <= of.operating.saturation * (1 + 1e-12)).all()
    limit = min(work.tpot for work in of.subject.traffic.workloads if work.tpot is not None)
    if role != "prefill":
        at = of.operating.at(capacity)
        inside = (capacity > 0.0) & np.isfinite(at)
        table = of.operating.tables
        for row in np.flatnonzero(inside)[::7]:
            step = np.interp(at[row], BATCHES, table.step[row])
            stall = np.interp(at[row], BATCHES, table.stall[row])
            assert float(tpot(step, stall, capacity[row])) <= limit * 1.05


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ["mixed", "prefill", "decode"])
def test_survivors_are_few_and_the_best_is_among_them(replicas_of: Made, name: str, role: str) -> None:
    of = replicas_of(name, role)
    kept = survivors(of, most(of))
    assert len(kept) == len(of)
    alive = kept.rejected == 0
    assert alive.any()
    # What was out stays out for its own reasons, what goes now goes as dominated.
    np.testing.assert_array_equal(kept.rejected[of.rejected != 0], of.rejected[of.rejected != 0])
    gone = (of.rejected == 0) & ~alive
    assert (kept.rejected[gone] == int(Reason.DOMINATED)).all()
    for row in np.unique(of.row[alive]):
        here = alive & (of.row == row)
        budgets, counts = np.unique(of.budget[here], return_counts=True)
        assert len(budgets) <= BUDGETS_KEPT
        assert counts.max() <= LIMITS_KEPT
    capacity = np.where(of.rejected == 0, mean_capacity(of), 0.0)
    need = np.where(capacity > 0, np.ceil(of.subject.traffic.peak_rate / np.maximum(capacity, 1e-9)), np.inf) * of.size
    assert need[alive].min() == need.min()
    assert (need[alive] <= FAR * need.min()).all()


def test_where_nothing_is_left_nothing_is_kept(replicas_of: Made) -> None:
    of = replicas_of("chat")
    none = of.with_rejected(of.rejected | int(Reason.MEMORY))
    assert (survivors(none, most(none)).rejected & int(Reason.MEMORY) != 0).all()


def test_what_has_no_accelerators_is_not_called_dominated(replicas_of: Made) -> None:
    of = replicas_of("chat")
    kept = survivors(of, np.zeros(len(of), np.int64))
    np.testing.assert_array_equal(kept.rejected, of.rejected)
