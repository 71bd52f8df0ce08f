"""Deadline work, alone and beside: what the plan promises agrees with an account of the hours."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from planner.fleet.deadline import SAFE, hours
from planner.plan.changes import changed, only
from planner.plan.night import free_rate, interactive_hours, run_end
from planner.plan.offers import Offer
from planner.plan.search import Search, search
from planner.plan.subjects import Member, subject
from planner.replica.candidates import Subject
from planner.spec.catalog import Case, Catalog, resolve


@lru_cache(maxsize=1)
def orbit() -> Case:
    catalog = Catalog()
    return only(resolve(catalog.scenario("orbit"), catalog), ["chat", "nightly"])


@lru_cache(maxsize=1)
def found() -> Search:
    return search(orbit())


def nightly() -> tuple[Member, Subject]:
    (member,) = (one for one in found().members if not one.interactive)
    return member, subject(orbit(), orbit().scenario.cluster.inventory[0], [member])


def beside() -> list[Offer]:
    return found().of(("chat", "nightly"))


def test_a_shared_pool_has_both_the_interactive_replicas_and_the_hours() -> None:
    member, work = nightly()
    assert beside()
    for offer in beside():
        (pool,) = offer.pools
        assert 1 <= offer.interactive_count <= pool.count
        each = pool.replicas.subject.traffic.peak_rate / offer.interactive_count
        busy = np.minimum(interactive_hours(offer.group) / each, pool.count)
        done = (pool.count - busy) * free_rate(pool, work) * SAFE * 3600.0 * hours(member.numbers)
        assert done.sum() >= (member.numbers.documents or 0) * (1 - 1e-9)
        end = run_end(offer, member, work)
        assert end <= (member.numbers.deadline or 0.0) * (1 + 1e-9)


def test_one_replica_fewer_would_be_late_or_break_the_interactive_promise() -> None:
    member, work = nightly()
    for offer in beside():
        (pool,) = offer.pools
        if pool.count > offer.interactive_count:
            each = pool.replicas.subject.traffic.peak_rate / offer.interactive_count
            busy = np.minimum(interactive_hours(offer.group) / each, pool.count - 1)
            done = (pool.count - 1 - busy) * free_rate(pool, work) * SAFE * 3600.0 * hours(member.numbers)
            assert done.sum() < (member.numbers.documents or 0)


def test_a_pool_of_its_own_finishes_in_time() -> None:
    member, work = nightly()
    alone = found().of(("nightly",))
    assert alone
    for offer in alone:
        (pool,) = offer.pools
        end = run_end(offer, member, work)
        assert end <= (member.numbers.deadline or 0.0)
        fewer = replace(offer, pools=(replace(pool, count=pool.count - 1),))
        assert pool.count == 1 or run_end(fewer, member, work) > (member.numbers.deadline or 0.0)
        # What is done by then is what there was, but for the moments in which the pool fills and empties.
        rate = float(pool.replicas.operating.saturation[pool.index]) * pool.count * SAFE
        assert rate * end == pytest.approx(member.numbers.documents, rel=5e-3)


@pytest.mark.parametrize("documents", [1, 7, 40, 3000])
@pytest.mark.parametrize("awake", [True, False])
def test_no_run_is_shorter_than_its_longest_document(documents: int, awake: bool) -> None:  # noqa: FBT001
    """However many replicas there are, one document takes a step for each of its tokens."""
    case = changed(orbit(), "workloads.nightly.batch.documents", documents)
    search_ = search(case)
    (member,) = (one for one in search_.members if not one.interactive)
    work = subject(case, case.scenario.cluster.inventory[0], [member])
    offers = search_.of(("chat", "nightly") if awake else ("nightly",))
    assert offers
    for offer in offers:
        (pool,) = offer.pools
        many = replace(offer, pools=(replace(pool, count=pool.count + 1000),))
        fastest = float(pool.replicas.operating.tables.step[pool.index].min())
        least = (member.numbers.output.maximum - 1.0) * fastest
        if awake:  # its steps are those of other contexts, a little shorter
            least *= 0.5
        assert least < run_end(many, member, work) <= run_end(offer, member, work) * (1 + 1e-9)


def test_a_deadline_shorter_than_a_document_has_no_plan() -> None:
    """The longest document decides, not how many there are."""
    case = changed(orbit(), "workloads.nightly.batch.documents", 1)
    whole = search(case)
    (member,) = (one for one in whole.members if not one.interactive)
    work = subject(case, case.scenario.cluster.inventory[0], [member])
    for names in (("nightly",), ("chat", "nightly")):
        fastest = min(run_end(offer, member, work) for offer in whole.of(names))
        assert search(changed(case, "workloads.nightly.promise.deadline", fastest * 1.5)).of(names)
    hopeless = search(changed(case, "workloads.nightly.promise.deadline", 0.1))
    assert not hopeless.of(("nightly",))
    assert not hopeless.of(("chat", "nightly"))


def test_longer_times_end_later() -> None:
    member, work = nightly()
    for offer in (*beside()[:3], *found().of(("nightly",))[:3]):
        ends = [run_end(offer, member, work, scale) for scale in (0.8, 1.0, 1.02)]
        assert ends == sorted(ends)
        assert ends[0] < ends[1]


def test_free_replicas_do_no_more_than_a_pool_of_its_own_would() -> None:
    _, work = nightly()
    for offer in beside():
        (pool,) = offer.pools
        assert free_rate(pool, work) > 0.0


def test_a_day_without_quiet_hours_leaves_no_free_ones() -> None:
    """A workload without a profile may be busiest at any time, so that the night has none of its hours."""
    case = changed(orbit(), "workloads.chat.traffic.profile", None)
    case = changed(case, "workloads.chat.traffic.peak_to_mean", 1.6)
    for offer in search(case).of(("chat", "nightly")):
        (pool,) = offer.pools
        traffic = pool.replicas.subject.traffic
        np.testing.assert_allclose(interactive_hours(offer.group), traffic.peak_rate)
        assert pool.count > offer.interactive_count
