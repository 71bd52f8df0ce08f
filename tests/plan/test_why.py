"""Reasons name the plan, its rival, and what runs today."""

from functools import lru_cache

import pytest

from planner.plan.answer import Recommendation
from planner.plan.changes import changed
from planner.plan.options import Shortfall, Stock
from planner.plan.recommend import recommend
from planner.plan.why import nodes_short
from planner.spec.catalog import Catalog, resolve


@lru_cache(maxsize=4)
def answer(name: str) -> Recommendation:
    catalog = Catalog()
    return recommend(resolve(catalog.scenario(name), catalog))


def test_every_workload_says_what_it_takes_and_what_another_way_would() -> None:
    for name in ("orbit", "quickstart", "rtx-documents"):
        for plan in answer(name).workloads:
            first = plan.reasons[0]
            if plan.predicted.goodput_share is not None:
                assert f"{sum(pool.accelerators for pool in plan.pools)} accelerator" in first
                shared = bool(plan.pools[0].shared_with)
                rival = "apart" if shared else {"split": "together", "together": "split"}[plan.decision]
                assert rival in first


def test_the_night_names_what_it_saves() -> None:
    works = {plan.name: plan for plan in answer("orbit").workloads}
    assert "hours that the others leave" in works["nightly"].reasons[0]
    assert "apart they take" in works["nightly"].reasons[0]


@pytest.mark.parametrize("reserve", [0, 1])
def test_a_rival_that_was_not_packed_takes_at_least_what_it_takes(reserve: int) -> None:
    """With nodes in reserve the spares of a rival depend on how it is spread, so its number is a bound."""
    catalog = Catalog()
    case = resolve(catalog.scenario("orbit"), catalog)
    case = changed(case, "reserve.nodes", reserve)
    for plan in recommend(case).workloads:
        for rival in ("split takes ", "together takes ", "apart they take "):
            _, found, rest = plan.reasons[0].partition(rival)
            assert not found or rest.startswith("at least ") == (reserve > 0)


def test_today_stands_beside_the_plan_of_every_workload_that_runs() -> None:
    for plan in answer("orbit").workloads:
        assert plan.reasons[-1].startswith("today: ")
    for plan in answer("quickstart").workloads:
        assert not any("today" in line for line in plan.reasons)


def test_missing_nodes_are_told_for_all_and_for_each() -> None:
    stock = [Stock("a", 3, 8, 1.0, 1.0), Stock("b", 2, 8, 1.0, 1.0)]
    short = Shortfall((), {"chat": 4, "code": 2}, 7, {"a": 2, "b": 0}, proved=True)
    whole, *each = nodes_short(short, stock)
    assert (whole.workload, whole.binding, whole.value, whole.limit) == (None, "nodes", 7.0, 5.0)
    assert [(change.field, change.from_, change.to) for change in whole.nearest] == [
        ("cluster.inventory.a.nodes", 3.0, 5.0)
    ]
    assert [(one.workload, one.value) for one in each] == [("chat", 4.0), ("code", 2.0)]


def test_nodes_that_lack_of_one_kind_are_held_against_that_kind() -> None:
    stock = [Stock("a", 1, 8, 1.0, 1.0), Stock("b", 5, 8, 1.0, 1.0)]
    kinds: dict[str, dict[tuple[str, ...], int]] = {"chat": {("a",): 2, ("b",): 9}, "code": {("b",): 4, ("a",): 2}}
    short = Shortfall((), {"chat": 2, "code": 2}, 2, {"a": 1, "b": 0}, proved=True, by_kind=kinds)
    whole, chat, code = nodes_short(short, stock)
    assert (whole.value, whole.limit) == (2.0, 1.0)
    assert (chat.value, chat.limit) == (2.0, 1.0)
    # Of its kinds, the one that lacks the least: five nodes hold the four that it needs.
    assert (code.value, code.limit) == (4.0, 5.0)
