"""Budgets: limits are read with their unit, faults say where they are, and each metric is held against the plan."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from planner.errors import InputError
from planner.plan.answer import CheckItem, Recommendation
from planner.plan.budgets import check_budgets, read_budgets
from planner.plan.recommend import recommend
from planner.spec.budget import Budget, Metric
from planner.spec.catalog import Case, Catalog, resolve
from planner.spec.scenario import Reserve

PLAIN = ["nodes", "accelerators", "utilisation", "load", "goodput_share", "headroom", "availability", "memory_margin"]
MONEY = {"cost_per_hour": "USD/h", "cost_per_million_output_tokens": "USD", "cost_per_successful_task": "USD"}
TIMES = [f"{kind}_p{level}" for kind in ("ttft", "tpot") for level in (50, 90, 95, 99)]
UNITS: dict[str, str] = dict.fromkeys(PLAIN, "") | MONEY | dict.fromkeys(TIMES, "s") | {"power": "W"}
HIGHER_IS_BETTER = {"goodput_share", "headroom", "availability", "memory_margin"}


def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


def with_budgets(case: Case, *budgets: Budget) -> Case:
    scenario = case.scenario.model_copy(update={"budgets": budgets})
    return replace(case, scenario=scenario)


@pytest.fixture(scope="module")
def case() -> Case:
    plain = shipped("quickstart")
    reserve = Reserve(nodes=0, mtbf="6335 h", mttr="4 h")
    scenario = plain.scenario.model_copy(update={"reserve": reserve})
    return replace(plain, scenario=scenario)


@pytest.fixture(scope="module")
def answer(case: Case) -> Recommendation:
    return recommend(case)


def checks(case: Case, answer: Recommendation, *budgets: Budget) -> tuple[CheckItem, ...]:
    return check_budgets(with_budgets(case, *budgets), answer.cluster, answer.workloads)


def written(value: float, unit: str) -> float | str:
    return f"{value!r} {unit}" if unit else value


def known(case: Case, answer: Recommendation, metric: str) -> float:
    """Figure of a metric, as a limit that nothing exceeds shows it."""
    (item,) = checks(case, answer, Budget(metric=metric, min=written(0.0, UNITS[metric])))
    assert item.value is not None
    assert item.met
    return item.value


def test_every_metric_of_the_contract_is_known() -> None:
    assert set(UNITS) == set(Metric.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("metric", sorted(UNITS))
def test_each_metric_passes_warns_and_fails(case: Case, answer: Recommendation, metric: str) -> None:
    value, unit = known(case, answer, metric), UNITS[metric]
    assert value > 0.0
    low, high = written(value * 0.5, unit), written(min(value * 1.5, 1.0) if value <= 1.0 else value * 1.5, unit)
    passed, missed = ({"min": low}, {"min": high}) if metric in HIGHER_IS_BETTER else ({"max": high}, {"max": low})
    (good,) = checks(case, answer, Budget(metric=metric, **passed))
    assert good.met
    assert good.severity == "fail"
    assert good.margin is not None
    assert good.margin >= 0.0
    (bad,) = checks(case, answer, Budget(metric=metric, **missed))
    assert (bad.met, bad.value) == (False, value)
    assert bad.margin is not None
    assert bad.margin < 0.0
    (warning,) = checks(case, answer, Budget(metric=metric, warn_max=low))
    assert (warning.severity, warning.met, warning.value) == ("warn", False, value)
    assert warning.margin == pytest.approx(-1.0)


def test_figures_are_those_of_the_answer(case: Case, answer: Recommendation) -> None:
    (plan,) = answer.workloads
    (pool,) = plan.pools
    latencies = plan.predicted.ttft, plan.predicted.tpot
    assert all(latencies)
    figures = {
        "nodes": answer.cluster.nodes_used,
        "accelerators": answer.cluster.accelerators_used,
        "cost_per_hour": answer.cluster.cost_per_hour,
        "power": answer.cluster.power_watts,
        "utilisation": pool.utilisation,
        "load": pool.load,
        "goodput_share": plan.predicted.goodput_share,
        "ttft_p95": latencies[0].p95 if latencies[0] else None,
        "tpot_p99": latencies[1].p99 if latencies[1] else None,
        "availability": plan.failure.availability,
        "memory_margin": pool.memory.kv / pool.memory.capacity,
        "cost_per_million_output_tokens": plan.cost.per_million_output_tokens,
        "cost_per_successful_task": plan.cost.per_successful_task,
    }
    assert {metric: known(case, answer, metric) for metric in figures} == figures


def test_headroom_is_the_growth_at_which_the_promise_breaks(case: Case, answer: Recommendation) -> None:
    (swing,) = answer.sensitivities
    assert swing.flips_at is not None
    assert known(case, answer, "headroom") == pytest.approx(swing.flips_at - 1.0)


def test_headroom_without_a_signal_is_the_way_to_saturation(case: Case, answer: Recommendation) -> None:
    (plan,) = answer.workloads
    silent = answer.model_copy(update={"workloads": (plan.model_copy(update={"revisit_when": ()}),)})
    assert known(case, silent, "headroom") == pytest.approx(1.0 / plan.pools[0].load - 1.0)


def test_a_figure_at_its_limit_is_met_and_has_no_margin(case: Case, answer: Recommendation) -> None:
    value = known(case, answer, "ttft_p95")
    for budget in (Budget(metric="ttft_p95", max=f"{value!r} s"), Budget(metric="ttft_p95", min=f"{value!r} s")):
        (item,) = checks(case, answer, budget)
        assert item.met
        assert item.margin == pytest.approx(0.0)


def test_each_limit_is_one_check_in_si_units(case: Case, answer: Recommendation) -> None:
    budget = Budget(metric="tpot_p90", workload="chat", min="1 ms", warn_min="2 ms", warn_max="30 ms", max="40 ms")
    items = checks(case, answer, budget)
    assert [(item.severity, item.min, item.max) for item in items] == [
        ("fail", 0.001, None),
        ("fail", None, 0.04),
        ("warn", 0.002, None),
        ("warn", None, 0.03),
    ]
    assert {item.workload for item in items} == {"chat"}


def test_an_unknown_figure_misses_its_limit(case: Case, answer: Recommendation) -> None:
    (plan,) = answer.workloads
    failure = plan.failure.model_copy(update={"availability": None})
    unknown = answer.model_copy(update={"workloads": (plan.model_copy(update={"failure": failure}),)})
    (item,) = checks(case, unknown, Budget(metric="availability", min=0.5))
    assert (item.value, item.margin, item.met) == (None, None, False)


def test_no_plan_meets_no_limit(case: Case, answer: Recommendation) -> None:
    none = answer.model_copy(update={"workloads": ()})
    items = checks(case, none, Budget(metric="nodes", max=1000), Budget(metric="load", max=1.0))
    assert [(item.value, item.met) for item in items] == [(None, False), (None, False)]


def test_the_worst_workload_counts_and_deadlines_have_no_latency() -> None:
    orbit = shipped("orbit")
    answer = recommend(orbit)
    plans = {plan.name: plan for plan in answer.workloads}
    shares = [plan.predicted.goodput_share for plan in plans.values() if plan.predicted.goodput_share is not None]
    assert len(shares) == 3
    budgets = Budget(metric="goodput_share", min=0.5), Budget(metric="goodput_share", workload="code", min=0.5)
    worst, code = check_budgets(with_budgets(orbit, *budgets), answer.cluster, answer.workloads)
    assert worst.value == min(shares)
    assert code.value == plans["code"].predicted.goodput_share
    hourly = [Budget(metric="cost_per_hour", workload=name, max="1 USD/h") for name in plans]
    items = check_budgets(with_budgets(orbit, *hourly), answer.cluster, answer.workloads)
    assert sum(item.value or 0.0 for item in items) == pytest.approx(answer.cluster.cost_per_hour)


def test_headroom_of_a_shared_pool_counts_what_all_offer(case: Case, answer: Recommendation) -> None:
    (plan,) = answer.workloads
    (pool,) = plan.pools
    pools = [pool.model_copy(update={"shared_with": (name,)}) for name in ("talk", "chat")]
    both = [
        plan.model_copy(update={"name": name, "pools": (shared,)})
        for name, shared in zip(("chat", "talk"), pools, strict=True)
    ]
    wide = with_budgets(case, Budget(metric="headroom", workload="chat", max=9.0))
    (item,) = check_budgets(wide, answer.cluster, both)
    threshold, offered = plan.revisit_when[0].threshold, plan.predicted.offered_rps
    assert item.value == pytest.approx(threshold / (2.0 * offered) - 1.0)


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ("{metric: node, max: 16}", "metric", "node"),
        ("{metric: ttft_p95, max: 500}", "max", "500 has no unit"),
        ("{metric: ttft_p95, warn_max: 5 USD}", "warn_max", "is not in s"),
        ("{metric: cost_per_hour, max: 5 USD}", "max", "is not in USD/h"),
        ("{metric: nodes, max: 16 nodes}", "max", "plain number"),
        ("{metric: goodput_share, min: 95}", "min", "between 0 and 1"),
        ("{metric: nodes, max: -1}", "max", "at least 0"),
        ("{metric: nodes}", "budgets.0", "needs a limit"),
        ("{metric: nodes, min: 9, max: 8}", "budgets.0", "min 9"),
        ("{metric: nodes, max: 8, warn_max: 9}", "budgets.0", "warn_max 9"),
        ("{metric: power, workload: chat, max: 9 kW}", "budgets.0", "leave workload out"),
        ("{metric: nodes, workload: chatt, max: 9}", "", "chatt"),
        ("{metric: nodes, max: 9}, {metric: nodes, min: 10}", "budgets.1.metric", "limited twice"),
    ],
)
def test_faults_name_file_line_and_field(tmp_path: Path, root: Path, wrong: str, field: str, words: str) -> None:
    text = (root / "scenarios" / "quickstart.yaml").read_text(encoding="utf-8").replace("quickstart", "mine")
    path = tmp_path / "mine.yaml"
    path.write_text(f"{text}\nbudgets: [{wrong}]\n", encoding="utf-8")
    catalog = Catalog()
    with pytest.raises(InputError) as caught:
        resolve(catalog.scenario(str(path)), catalog, path)
    fault = caught.value.faults[0]
    assert fault.file.endswith("mine.yaml")
    assert fault.line is not None
    assert fault.field.startswith("budgets.0." + field if field.isidentifier() else field)
    assert words in fault.problem


@pytest.mark.parametrize("metric", ["ttft_p95", "tpot_p50", "load", "headroom", "availability", "goodput_share"])
def test_deadline_work_has_no_such_metric(metric: str) -> None:
    budget = Budget(metric=metric, workload="nightly", max="1 s" if UNITS[metric] else 0.5)
    case = with_budgets(shipped("orbit"), budget)
    with pytest.raises(InputError, match="nightly") as caught:
        read_budgets(case)
    assert caught.value.faults[0].field == "budgets.0.workload"
    catalog = Catalog()
    with pytest.raises(InputError, match="deadline"):
        resolve(case.scenario, catalog)


def test_a_limit_must_be_a_number_or_text() -> None:
    with pytest.raises(ValidationError):
        Budget.model_validate_json('{"metric": "nodes", "max": true}', strict=True)
