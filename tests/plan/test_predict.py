"""Predictions: bands hold their value, percentiles rise, and only a load near capacity leaves them open."""

from functools import lru_cache

import pytest

from planner.fleet.goodput import CENTRE
from planner.plan.certainty import Certainty, Factor
from planner.plan.changes import changed
from planner.plan.offers import Offer
from planner.plan.predict import interactive, point
from planner.plan.predicted import Percentiles
from planner.plan.recommend import recommend
from planner.plan.search import search
from planner.plan.subjects import Member
from planner.spec.catalog import Catalog, resolve

SHIPPED = Catalog().names("scenario")
UNSURE = Certainty(Factor(0.8, 1.0, 1.25), Factor(0.6, 1.0, 1.9), 1.0, measured=True)
NONE = Factor(1.0, 1.0, 1.0)


@lru_cache(maxsize=16)
def served(name: str) -> list[tuple[Offer, Member]]:
    """Offers of interactive workloads, a few of each scenario."""
    catalog = Catalog()
    found = search(resolve(catalog.scenario(name), catalog))
    return [(o, o.group.interactive[0]) for o in (*found.offers, *found.dearer) if o.group.interactive][::7]


def check(times: Percentiles, *, open_ended: bool) -> None:
    levels = [times.p50, times.p90, times.p95, times.p99]
    assert all(level is not None for level in levels)
    assert levels == sorted(levels, key=lambda level: level or 0.0)
    low, high = times.at.band
    assert low is not None
    assert times.at.value is not None
    assert 0.0 < low <= times.at.value
    assert (high is None) == open_ended
    assert high is None or high >= times.at.value


@pytest.mark.parametrize("name", SHIPPED)
def test_a_band_holds_its_value_and_is_open_only_where_its_end_has_no_steady_state(name: str) -> None:
    for offer, member in served(name):
        points = [point(pool, deadline=False) for pool in offer.pools]
        told = interactive(offer, member, UNSURE)
        assert told.ttft is not None
        assert told.tpot is not None
        for times, one in ((told.ttft, points[0]), (told.tpot, points[-1])):
            assert one.load < CENTRE
            check(times, open_ended=one.load * UNSURE.step.high >= CENTRE)
        assert told.goodput_share is not None
        assert told.goodput_share_band is not None
        low, high = told.goodput_share_band
        assert low is not None
        assert high is not None
        assert 0.0 <= low <= told.goodput_share <= high <= 1.0
        assert told.goodput_share >= member.numbers.share - 1e-6
        # The plan holds as predicted, so an even chance is the least.
        assert told.promise_probability is not None
        assert 0.25 - 1e-9 <= told.promise_probability <= 1.0
        assert told.goodput_rps == pytest.approx(told.offered_rps * told.goodput_share)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_point_is_where_the_load_says(name: str) -> None:
    for offer, _ in served(name):
        for pool in offer.pools:
            one = point(pool, deadline=False)
            rate = pool.replicas.subject.traffic.peak_rate
            assert one.load == pytest.approx(rate / one.saturation)
            assert 0.0 <= one.busy <= 1.0
            assert one.batch <= float(pool.replicas.operating.batch_limit[pool.index]) * (1 + 1e-6)


def test_without_a_band_the_prediction_is_a_point() -> None:
    offer, member = served("quickstart")[0]
    told = interactive(offer, member, Certainty(NONE, NONE, 1.0, measured=True))
    assert told.ttft is not None
    assert told.ttft.at.band == (told.ttft.at.value, told.ttft.at.value)
    assert told.goodput_share_band == (told.goodput_share, told.goodput_share)
    assert told.promise_probability == 1.0


def test_the_surer_the_times_the_surer_the_promise() -> None:
    for offer, member in served("orbit")[:3]:
        chances = []
        for high in (1.05, 1.3, 2.0, 4.0):
            factor = Factor(1.0 / high, 1.0, high)
            chances.append(
                interactive(offer, member, Certainty(factor, factor, 1.0, measured=True)).promise_probability
            )
        assert chances == sorted(chances, key=lambda chance: -(chance or 0.0))


def test_offered_is_the_busiest_hour_and_tokens_follow_it() -> None:
    catalog = Catalog()
    case = resolve(catalog.scenario("quickstart"), catalog)
    (chat,) = recommend(changed(case, "workloads.chat.traffic.rate", 6.0)).workloads
    assert chat.predicted.offered_rps == pytest.approx(9.0)
    assert chat.predicted.output_tokens_per_s == pytest.approx(9.0 * 220.0, rel=1e-6)


def test_the_shown_percentile_is_the_promises() -> None:
    catalog = Catalog()
    case = resolve(catalog.scenario("quickstart"), catalog)
    (chat,) = recommend(changed(case, "workloads.chat.promise.percentile", 90.0)).workloads
    assert chat.predicted.ttft is not None
    assert chat.predicted.ttft.at.percentile == 90.0
    assert chat.predicted.ttft.at.value == pytest.approx(chat.predicted.ttft.p90)
