"""How sure a plan is: factors that are quantiles, thresholds that are found, and plans that dare less."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.chip import slowed
from planner.engine.step import body, total
from planner.plan.certainty import REACH, Factor, better, breaks_at, certainty
from planner.plan.recommend import recommend
from planner.plan.search import search
from planner.replica.candidates import bench
from planner.spec.bands import WIDE, BandRow, Bands
from planner.spec.catalog import Case, Catalog, resolve

wide = st.floats(1.01, 20.0)


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@given(low=wide, high=wide, median=st.floats(0.1, 10.0))
def test_a_factor_has_its_band_as_quantiles(low: float, high: float, median: float) -> None:
    of = Factor(median / low, median, median * high)
    assert of.below(of.low) == pytest.approx(0.1, abs=1e-6)
    assert of.below(of.median) == pytest.approx(0.5, abs=1e-6)
    assert of.below(of.high) == pytest.approx(0.9, abs=1e-6)
    grid = np.geomspace(of.low / 4.0, of.high * 4.0, 40)
    chances = [of.below(float(at)) for at in grid]
    assert chances == sorted(chances)


@given(at=st.floats(0.01, 100.0))
def test_what_breaks_a_promise_is_found(at: float) -> None:
    found = breaks_at(lambda factor: factor <= at)
    assert found == pytest.approx(min(max(at, 1.0 / REACH), REACH), rel=0.01)


@given(
    shares=st.lists(st.floats(0.1, 100.0), min_size=1, max_size=4),
    times=st.floats(0.2, 5.0),
    spread=st.floats(0.0, 1.0),
)
def test_no_error_of_one_subject_decides_between_two_plans_of_it(
    shares: list[float], times: float, spread: float
) -> None:
    plan = {str(number): cost for number, cost in enumerate(shares)}
    other = {name: cost * times for name, cost in plan.items()}
    chance = better(plan, other, dict.fromkeys(plan, spread))
    assert chance == pytest.approx(float(times < 1.0) if abs(times - 1.0) > 1e-9 else 0.5)


@given(ours=st.floats(1.0, 100.0), theirs=st.floats(1.0, 100.0), spread=st.floats(0.01, 1.0))
def test_of_two_plans_one_is_the_cheaper(ours: float, theirs: float, spread: float) -> None:
    spreads = {"a": spread, "b": spread / 2.0}
    one, two = better({"a": ours}, {"b": theirs}, spreads), better({"b": theirs}, {"a": ours}, spreads)
    assert one + two == pytest.approx(1.0, abs=1e-6)
    assert (one > 0.5) == (theirs < ours) or ours == pytest.approx(theirs)


def test_the_bands_of_a_family_count_and_others_only_stand_in() -> None:
    rows = (
        BandRow(kind="fixed_concurrency", metric="tpot", family="hopper", rows=50, low=0.9, high=1.2),
        BandRow(kind="fixed_concurrency", metric="tpot", rows=90, low=0.7, high=1.6),
    )
    bands = Bands(sources={"residuals": "made up"}, bands=rows)
    model = Catalog().model("llama-3.1-8b")
    here, there = (certainty(bands, family, model, confident=False) for family in ("hopper", "cdna3"))
    assert (here.measured, there.measured) == (True, False)
    assert (here.step.low, here.step.high, there.step.high) == (0.9, 1.2, 1.6)
    assert (here.first.low, here.first.high) == WIDE
    assert certainty(bands, "hopper", model, confident=True).step.high == 1.0


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_every_part_of_a_slowed_chip_takes_that_much_longer(factor: float) -> None:
    for offer in search(shipped("orbit")).offers[:5]:
        of = offer.pools[0].replicas
        inside = of.machine.layouts.rows(np.flatnonzero(of.machine.layouts.accelerators <= of.subject.chip.domain))
        late = replace(of.subject, chip=slowed(of.subject.chip, factor))
        before, after = (
            total(body(bench(subject, inside, np.zeros(len(inside), np.int64)).machine, np.array([1.0, 300.0, 5000.0])))
            for subject in (of.subject, late)
        )
        np.testing.assert_allclose(after, before * factor, rtol=1e-9)


def banded(name: str, low: float, high: float) -> Case:
    """A shipped scenario on which nothing but the time of a step is uncertain."""
    exact = BandRow(kind="fixed_concurrency", metric="ttft", family="hopper", rows=50, low=1.0, high=1.0)
    row = BandRow(kind="fixed_concurrency", metric="tpot", family="hopper", rows=50, low=low, high=high)
    return replace(shipped(name), bands=Bands(sources={"residuals": "made up"}, bands=(row, exact)))


@pytest.mark.parametrize("name", ["orbit", "quickstart"])
def test_a_confident_plan_holds_nine_times_in_ten_and_is_no_cheaper(name: str) -> None:
    case = banded(name, 0.8, 1.15)
    plain, sure = recommend(case), recommend(replace(case, confident=True))
    assert sure.feasible
    assert sure.cluster.cost_per_hour >= plain.cluster.cost_per_hour - 1e-9
    assert any(one.name == "step times and TTFT" for one in sure.assumptions)
    for work in sure.workloads:
        assert work.predicted.promise_probability is not None
        assert work.predicted.promise_probability >= 0.9 - 1e-6
        of = work.predicted.tpot
        assert of is None or of.at.band[1] == of.at.value


@pytest.mark.parametrize("name", ["orbit", "quickstart", "ada-support"])
def test_a_confident_plan_holds_with_four_in_five_whatever_is_uncertain(name: str) -> None:
    sure = recommend(replace(shipped(name), confident=True))
    assert sure.feasible
    for work in sure.workloads:
        assert work.predicted.promise_probability is not None
        assert work.predicted.promise_probability >= 0.81 - 1e-6


def test_a_confident_plan_without_bands_is_the_plan() -> None:
    case = banded("quickstart", 1.0, 1.0)
    plain, sure = recommend(case), recommend(replace(case, confident=True))
    assert sure.workloads == plain.workloads
