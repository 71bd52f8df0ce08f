"""Where there is no plan, the answer says what binds, and its nearest changes are tried: applied, there is a plan."""

from dataclasses import replace
from functools import lru_cache

import pytest

from planner.plan.answer import Change, Infeasible, Recommendation
from planner.plan.changes import changed, only
from planner.plan.recommend import recommend
from planner.spec.catalog import Case, Catalog, resolve
from planner.spec.scenario import Scenario


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


def applied(case: Case, change: Change) -> Recommendation:
    assert isinstance(change.to, float)
    value = round(change.to) if change.field.endswith("nodes") else change.to
    return recommend(changed(case, change.field, value))


def only_problem(case: Case) -> Infeasible:
    answer = recommend(case)
    assert not answer.feasible
    (problem,) = answer.infeasible
    return problem


@pytest.mark.parametrize(("name", "limit"), [("ttft", 0.015), ("tpot", 0.002)])
def test_a_promise_that_one_request_alone_cannot_meet_binds_by_its_name(name: str, limit: float) -> None:
    case = changed(shipped("quickstart"), f"workloads.chat.promise.{name}", limit)
    problem = only_problem(case)
    assert (problem.workload, problem.binding, problem.limit) == ("chat", name, limit)
    assert problem.value is not None
    assert problem.value > limit
    nearest = problem.nearest[0]
    assert nearest.field == f"workloads.chat.promise.{name}"
    assert isinstance(nearest.to, float)
    assert all(applied(case, change).feasible for change in problem.nearest)
    # A step less and there is none: the change is the nearest.
    assert not applied(case, nearest.model_copy(update={"to": nearest.to / 1.021})).feasible


def test_too_few_nodes_bind_with_the_number_that_suffices() -> None:
    case = changed(shipped("quickstart"), "workloads.chat.traffic.rate", 600.0)
    problem = only_problem(case)
    (nearest,) = problem.nearest
    assert (problem.binding, problem.limit) == ("nodes", 1.0)
    assert (nearest.field, nearest.from_) == ("cluster.inventory.h100-sxm.nodes", 1.0)
    assert nearest.to == problem.value
    assert applied(case, nearest).feasible
    assert isinstance(nearest.to, float)
    assert not applied(case, nearest.model_copy(update={"to": nearest.to - 1.0})).feasible


def test_the_reserve_counts_among_the_nodes_that_suffice() -> None:
    case = changed(changed(shipped("quickstart"), "workloads.chat.traffic.rate", 600.0), "reserve.nodes", 2)
    (nearest,) = only_problem(case).nearest
    assert applied(case, nearest).feasible


def test_nodes_that_lack_for_all_together_are_counted_together() -> None:
    case = changed(shipped("orbit"), "cluster.inventory.h100-sxm.nodes", 7)
    answer = recommend(case)
    whole = answer.infeasible[0]
    assert (answer.feasible, whole.workload, whole.binding, whole.limit) == (False, None, "nodes", 7.0)
    (nearest,) = whole.nearest
    assert isinstance(nearest.to, float)
    assert nearest.to > 7.0
    assert applied(case, nearest).feasible
    alone = [one.value for one in answer.infeasible[1:]]
    assert len(alone) == len(case.scenario.workloads)
    assert all(value is not None and value <= nearest.to for value in alone)


def large(case: Case) -> Case:
    """The case with a model of 671 billion parameters in 16 bits, which fit eight nodes at best."""
    case = replace(case, models={"deepseek-r1": Catalog().model("deepseek-r1")})
    case = changed(case, "workloads.chat.weights_dtype", "bf16")
    return changed(case, "workloads.chat.model", "deepseek-r1")


def test_a_model_that_is_too_large_lacks_memory() -> None:
    case = large(shipped("quickstart"))
    problem = only_problem(case)
    assert problem.binding == "memory"
    assert problem.value is not None
    assert problem.limit is not None
    assert problem.value > problem.limit
    assert all(applied(case, change).feasible for change in problem.nearest)


def test_one_workload_without_a_plan_does_not_hide_the_others() -> None:
    case = changed(shipped("orbit"), "workloads.code.promise.tpot", 0.0005)
    answer = recommend(case)
    assert not answer.feasible
    assert [problem.workload for problem in answer.infeasible] == ["code"]
    assert answer.infeasible[0].binding == "tpot"
    assert {plan.name for plan in answer.workloads} == {"chat", "agents", "nightly"}


def test_without_any_plan_there_is_still_an_answer() -> None:
    case = shipped("rtx-documents")
    case = changed(case, "workloads.answers.promise.tpot", 1e-5)
    case = changed(case, "workloads.documents.batch.documents", 10**9)
    answer = recommend(case)
    assert not answer.feasible
    assert answer.workloads == ()
    assert {problem.workload: problem.binding for problem in answer.infeasible} == {
        "answers": "tpot",
        "documents": "nodes",
    }
    assert answer.cluster.cost_per_hour == 0.0


@pytest.mark.parametrize("rate", [5e4, 1e7])
def test_a_rate_beyond_any_inventory_still_says_how_many_nodes_it_takes(rate: float) -> None:
    problem = only_problem(changed(shipped("quickstart"), "workloads.chat.traffic.rate", rate))
    assert (problem.workload, problem.binding, problem.limit) == ("chat", "nodes", 1.0)
    assert problem.value is not None
    # No node does more than all of its accelerators at saturation, and at 1e7 nothing is lost to rounding up.
    few = only_problem(changed(shipped("quickstart"), "workloads.chat.traffic.rate", 1e3))
    assert few.value is not None
    assert problem.value == pytest.approx(few.value * rate / 1e3, rel=0.25)


def test_a_run_beyond_any_inventory_still_says_how_many_nodes_it_takes() -> None:
    case = only(shipped("rtx-documents"), ["documents"])
    values = []
    for documents in (10**9, 10**12):
        problem = only_problem(changed(case, "workloads.documents.batch.documents", documents))
        assert problem.binding == "nodes"
        assert problem.limit == case.scenario.cluster.inventory[0].nodes
        assert problem.value is not None
        values.append(problem.value)
    assert values[1] == pytest.approx(1e3 * values[0], rel=0.05)


def test_a_deadline_shorter_than_a_document_binds_by_its_name() -> None:
    case = only(shipped("rtx-documents"), ["documents"])
    case = changed(changed(case, "workloads.documents.batch.documents", 5), "workloads.documents.promise.deadline", 0.1)
    problem = only_problem(case)
    assert (problem.binding, problem.limit) == ("deadline", 0.1)
    assert problem.value is not None
    assert problem.value > 0.1
    (nearest,) = problem.nearest
    assert isinstance(nearest.to, float)
    assert applied(case, nearest).feasible
    assert not applied(case, nearest.model_copy(update={"to": nearest.to / 1.021})).feasible


def mixed(case: Case, *kinds: str) -> Case:
    """The case with one node of each of several kinds."""
    catalog, stock = Catalog(), case.scenario.cluster.inventory[0]
    inventory = [{"hardware": kind, "nodes": 1} for kind in kinds]
    text = case.scenario.model_dump(mode="json", exclude_unset=True) | {"cluster": {"inventory": inventory}}
    assert stock.nodes == 1
    return resolve(Scenario.model_validate(text), catalog)


@pytest.mark.parametrize("kinds", [("h100-sxm", "l4"), ("l4", "h100-sxm")])
@pytest.mark.parametrize("rate", [60.0, 150.0, 250.0, 600.0])
def test_need_and_limit_are_of_the_same_kind_of_node(kinds: tuple[str, str], rate: float) -> None:
    case = changed(mixed(shipped("quickstart"), *kinds), "workloads.chat.traffic.rate", rate)
    answer = recommend(case)
    for problem in answer.infeasible:
        assert problem.value is not None
        assert problem.limit is not None
        assert problem.value > problem.limit
        for change in problem.nearest:
            assert applied(case, change).feasible
    assert answer.feasible == (not answer.infeasible)
    assert answer.feasible or rate > 60.0
