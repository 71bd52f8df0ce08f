"""Deadline work against an account of the day, minute by minute."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fleet.deadline import SAFE, beside, dedicated, finish, hours, residence, run_time, spare_rate
from planner.numeric import Floats
from planner.replica.candidates import Replicas, Role

MINUTE = 60.0


@dataclass(frozen=True)
class Run:
    """What deadline work is made of."""

    name: str
    start: float | None
    deadline: float | None
    documents: int


starts = st.integers(0, 1439).map(lambda minutes: minutes * MINUTE)
lengths = st.integers(30, 1440).map(lambda minutes: minutes * MINUTE)
profiles = st.lists(st.floats(0.0, 3.0), min_size=24, max_size=24).map(np.array)


def account(run: Run, per_hour: Floats, until: float) -> float:
    """Documents done from the start of a run for ``until`` seconds, minute by minute."""
    assert run.start is not None
    done = 0.0
    for minute in range(round(until / MINUTE)):
        hour = int((run.start + minute * MINUTE) // 3600.0) % 24
        done += per_hour[hour] / 60.0
    return done


@given(start=starts, deadline=lengths)
def test_the_window_is_as_long_as_the_run(start: float, deadline: float) -> None:
    window = hours(Run("night", start, deadline, 1))  # type: ignore[arg-type]
    assert window.sum() * 3600.0 == pytest.approx(deadline)
    assert ((window >= 0.0) & (window <= 1.0 + 1e-9)).all()


def test_work_without_a_deadline_has_no_window() -> None:
    with pytest.raises(ValueError, match="night has no deadline"):
        hours(Run("night", None, None, 1))  # type: ignore[arg-type]


@given(start=starts, per_hour=profiles, documents=st.integers(1, 40))
def test_a_run_ends_when_its_last_document_is_done(start: float, per_hour: Floats, documents: int) -> None:
    run = Run("night", start, 24 * 3600.0, documents)
    end = finish(run, per_hour)  # type: ignore[arg-type]
    if end == np.inf:
        assert account(run, per_hour, 24 * 3600.0) <= documents * (1 + 1e-9)
    else:
        # Documents are conserved: what is done by then is what there was, to the minute.
        before, after = (account(run, per_hour, np.floor(end / MINUTE + step) * MINUTE) for step in (0.0, 1.0))
        assert before * (1 - 1e-9) <= documents <= after * (1 + 1e-9)


@given(
    start=starts,
    deadline=lengths,
    hourly=st.lists(st.floats(0.1, 50.0), min_size=24, max_size=24).map(np.array),
    rate=st.floats(0.5, 20.0),
    low=st.integers(1, 20),
    documents=st.integers(1, 2_000_000),
)
def test_the_replicas_beside_are_the_fewest_that_the_account_allows(
    start: float, deadline: float, hourly: Floats, rate: float, low: int, documents: int
) -> None:
    run = Run("night", start, deadline, documents)
    each = float(hourly.max()) / low
    bounds = np.array([low]), np.array([low + 60])
    need = int(beside(run, hourly, np.array([each]), np.array([rate]), *bounds)[0])  # type: ignore[arg-type]

    def done(count: int) -> float:
        free = count - np.minimum(hourly / each, count)
        return account(run, free * rate * SAFE * 3600.0, deadline)

    counts = [count for count in range(low, low + 61) if done(count) >= documents]
    close = min(abs(done(count) - documents) for count in range(low, low + 61)) <= 1e-6 * documents
    assert close or need == (counts[0] if counts else low + 61)


def test_free_replicas_work_and_busy_ones_do_not() -> None:
    got = spare_rate(np.array([0.0, 5.0, 10.0, 12.0]), np.array([10.0]), np.array([4]), np.array([2.0]))
    np.testing.assert_allclose(got, [[8.0 * SAFE, 4.0 * SAFE, 0.0, 0.0]])


def test_dedicated_replicas_are_enough_and_one_fewer_is_not(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    held = np.flatnonzero(of.rejected == 0)[::7]
    op, traffic, most = of.operating.rows(held), of.subject.traffic, np.full(len(held), 10**6)
    for documents, deadline in ((1.0, 60.0), (300.0, 60.0), (1e5, 600.0), (1e7, 3e4)):
        count = dedicated(op, traffic, documents, deadline, most)
        enough = count <= most
        assert enough.any()
        assert (run_time(op, traffic, documents, count)[enough] <= deadline).all()
        more = enough & (count > 1)
        assert (run_time(op, traffic, documents, count - 1)[more] > deadline).all()


def test_a_run_takes_its_queue_and_the_stay_of_its_longest_document(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    held = np.flatnonzero(of.rejected == 0)[::7]
    op, traffic = of.operating.rows(held), of.subject.traffic
    one = run_time(op, traffic, 1.0, np.ones(len(held)))
    steps = traffic.output.maximum - 1.0
    assert (one >= steps * op.tables.step[:, 0]).all()
    # No number of replicas is faster than one is with one document.
    np.testing.assert_allclose(run_time(op, traffic, 50.0, np.full(len(held), 50)), one)
    np.testing.assert_allclose(run_time(op, traffic, 50.0, np.full(len(held), 5000)), one)
    # A long run goes at the rate that it is planned on.
    long = run_time(op, traffic, 1e9, np.ones(len(held)))
    np.testing.assert_allclose(long * op.saturation * SAFE, 1e9, rtol=1e-3)


def test_longer_documents_stay_longer_and_so_do_those_of_a_larger_batch(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    held = np.flatnonzero(of.rejected == 0)[::7]
    op, traffic = of.operating.rows(held), of.subject.traffic
    stays = [residence(op, traffic, np.full(len(held), batch)) for batch in (1.0, 5.0, 60.0)]
    assert (np.diff(stays, axis=0) >= -1e-12).all()
    longer = replace(traffic, output=traffic.output.scaled(2.0))
    assert (residence(op, longer, np.full(len(held), 5.0)) > stays[1]).all()
