"""The goodput objective: the largest multiple of all rates that the inventory carries."""

from functools import lru_cache

import pytest

from planner.plan.changes import changed
from planner.plan.recommend import recommend
from planner.plan.scaling import LEAST, carried, largest_multiple, scaled
from planner.spec.catalog import Case, Catalog, resolve


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@pytest.mark.parametrize("name", ["quickstart", "rtx-documents"])
def test_the_multiple_is_carried_and_five_per_cent_more_is_not(name: str) -> None:
    multiple, case = largest_multiple(shipped(name))
    assert multiple > 1.0
    assert carried(case)
    assert not carried(scaled(shipped(name), multiple * 1.05))


def test_a_case_that_is_not_carried_is_scaled_down() -> None:
    heavy = scaled(shipped("quickstart"), 40.0)
    multiple, case = largest_multiple(heavy)
    assert LEAST < multiple < 1.0
    assert carried(case)
    assert not carried(scaled(heavy, multiple * 1.05))


def test_a_case_that_no_rate_helps_stays_as_it_is() -> None:
    hopeless = changed(shipped("quickstart"), "workloads.chat.promise.tpot", 1e-5)
    assert largest_multiple(hopeless) == (0.0, hopeless)
    answer = recommend(hopeless, "goodput")
    assert not answer.feasible
    assert answer.assumptions[0].value == 0.0


def test_the_answer_names_the_multiple_and_offers_the_scaled_rate() -> None:
    answer = recommend(shipped("quickstart"), "goodput")
    multiple = answer.assumptions[0].value
    assert answer.assumptions[0].name == "rate multiple"
    assert isinstance(multiple, float)
    assert answer.feasible
    (chat,) = answer.workloads
    assert chat.predicted.offered_rps == pytest.approx(15.0 * multiple)


def test_rates_and_documents_scale_alike() -> None:
    works = scaled(shipped("rtx-documents"), 1.5).scenario.workloads
    assert works[0].traffic is not None
    assert works[0].traffic.rate == pytest.approx(7.5)
    assert works[1].batch is not None
    assert works[1].batch.documents == 150_000


@pytest.mark.parametrize(("nodes", "rate"), [(4, 4.0), (4, 0.01), (32, 1.0)])
def test_the_inventory_ends_the_search_and_nothing_else(nodes: int, rate: float) -> None:
    """However far the multiple is from one, a plan at just that rate exists, and none at a little more."""
    case = changed(shipped("quickstart"), "cluster.inventory.h100-sxm.nodes", nodes)
    case = changed(case, "workloads.chat.traffic.rate", rate)
    multiple, found = largest_multiple(case)
    assert multiple > 128.0 * (nodes > 4 or rate < 1.0)
    (work,) = found.scenario.workloads
    assert work.traffic is not None
    assert work.traffic.rate == pytest.approx(rate * multiple)
    assert recommend(found).feasible
    assert not recommend(changed(case, "workloads.chat.traffic.rate", rate * multiple * 1.05)).feasible


def test_the_same_inventory_ends_at_the_same_rate_wherever_the_search_begins() -> None:
    ends = []
    for rate in (0.02, 20.0, 3e5):
        case = changed(shipped("quickstart"), "workloads.chat.traffic.rate", rate)
        ends.append(rate * largest_multiple(case)[0])
    assert max(ends) <= min(ends) * 1.05
