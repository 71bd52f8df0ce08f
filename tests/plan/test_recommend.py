"""Recommendations: Orbit's nodes, what a careless plan of it would take, and the objectives."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
import yaml

from planner.engine import layouts
from planner.engine.layouts import Layouts
from planner.plan.answer import Recommendation
from planner.plan.options import Choice, Shortfall
from planner.plan.recommend import choose, recommend
from planner.plan.search import options, search, stocks
from planner.plan.solve import solve
from planner.spec.catalog import Case, Catalog, resolve


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@lru_cache(maxsize=4)
def answer(name: str, objective: str = "cost") -> Recommendation:
    return recommend(shipped(name), objective)


def test_a_good_plan_of_orbit_takes_ten_to_fourteen_of_its_nodes_spares_included() -> None:
    plan = answer("orbit")
    assert plan.feasible
    assert 10 <= plan.cluster.nodes_used <= 14
    assert plan.cluster.spare_nodes >= 1
    for work in plan.workloads:
        if work.predicted.goodput_share is not None:
            assert work.predicted.goodput_share_required is not None
            assert work.predicted.goodput_share >= work.predicted.goodput_share_required
        else:
            assert work.predicted.deadline is not None
            assert work.predicted.deadline.met


def test_a_careless_plan_of_orbit_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything cut eight ways, nothing shared, the night in a pool of its own: same promises, same reserve."""
    case = shipped("orbit")
    eight_ways = Layouts.of([(8, 1, 1, 1), (8, 1, 1, 8)])  # experts whole where their blocks cannot be cut
    monkeypatch.setattr(layouts, "candidates", lambda _model, _largest: eight_ways)
    found = search(case)
    careless = [o for o in (*found.offers, *found.dearer) if len(o.group.members) == 1 and o.decision == "together"]
    names = [work.name for work in case.scenario.workloads]
    assert {name for offer in careless for name in offer.group.names} == set(names)
    table = options(replace(found, offers=careless))
    plan = solve(table, stocks(case), names, case.scenario.reserve.nodes)
    assert isinstance(plan, Shortfall)
    assert plan.nodes_needed is not None
    assert plan.nodes_needed > sum(stock.nodes for stock in stocks(case))


def test_each_objective_is_best_at_its_own_figure() -> None:
    case = shipped("orbit")
    by = {name: answer("orbit", name) for name in ("cost", "nodes")}
    assert by["cost"].cluster.cost_per_hour <= by["nodes"].cluster.cost_per_hour
    assert by["nodes"].cluster.nodes_used < by["cost"].cluster.nodes_used
    _, power = choose(case, "power")
    assert isinstance(power, Choice)
    # Power is that of the accelerators used, each with its share of the node.
    assert power.objective <= by["cost"].cluster.accelerators_used * stocks(case)[0].power * (1 + 1e-9)


def test_the_runner_up_differs_in_kind_and_is_no_better() -> None:
    for name in ("orbit", "quickstart"):
        second = answer(name).runner_up
        assert second is not None
        assert second.delta >= 0.0
        assert second.changes
        assert second.objective == pytest.approx(answer(name).cluster.cost_per_hour + second.delta)


def test_deadline_work_shares_what_the_day_leaves() -> None:
    works = {work.name: work for work in answer("orbit").workloads}
    assert works["nightly"].pools[0].id == works["chat"].pools[0].id
    assert works["nightly"].pools[0].shared_with == ("chat",)
    assert works["nightly"].predicted.ttft is None
    assert works["nightly"].failure.one_node_lost.goodput_share is None
    assert 0.0 < works["nightly"].cost.per_hour < answer("orbit").cluster.cost_per_hour


def test_the_exit_status_says_whether_there_is_a_plan(tmp_path: Path) -> None:
    document = yaml.safe_load(Catalog().scenario_file("quickstart").read_text(encoding="utf-8"))
    document["workloads"][0]["promise"]["ttft"] = "15 ms"
    path = tmp_path / "quickstart.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "planner", "recommend"]
    done = subprocess.run([*command, str(path), "-f", "json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["infeasible"][0]["binding"] == "ttft"
    good = subprocess.run([*command, "quickstart", "-f", "json"], capture_output=True, text=True, check=False)
    assert good.returncode == 0
    assert json.loads(good.stdout)["feasible"] is True


def test_a_lost_node_without_reserve_takes_what_it_holds() -> None:
    """The one replica of the quickstart goes with its node, and no more requests than it runs."""
    (chat,) = answer("quickstart").workloads
    lost = chat.failure.one_node_lost
    assert (lost.goodput_share, lost.capacity_share) == (0.0, 0.0)
    assert chat.pools[0].max_batch is not None
    assert 0.0 < lost.requests_lost <= chat.pools[0].max_batch


def test_two_workloads_without_profiles_share_a_pool_at_both_their_peaks() -> None:
    case = shipped("quickstart")
    chat = case.scenario.workloads[0]
    twins = (chat, chat.model_copy(update={"name": "talk"}))
    scenario = case.scenario.model_copy(update={"workloads": twins})
    found = search(replace(case, scenario=scenario))
    (both, *_) = found.of(("chat", "talk"))
    assert both.pools[0].replicas.subject.traffic.peak_rate == pytest.approx(30.0)
