"""Parts of the answer: KV verdicts, costs, failures, headroom."""

from functools import lru_cache

import pytest

from planner.plan.answer import Recommendation, WorkloadPlan
from planner.plan.changes import changed
from planner.plan.describe import CONGESTION
from planner.plan.recommend import recommend
from planner.spec.catalog import Case, Catalog, resolve


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@lru_cache(maxsize=4)
def answer(name: str) -> Recommendation:
    return recommend(shipped(name))


def plan(name: str, workload: str) -> WorkloadPlan:
    (one,) = (plan for plan in answer(name).workloads if plan.name == workload)
    return one


def test_kv_moves_where_the_link_beats_computing_it_again() -> None:
    for name in ("orbit", "quickstart", "rtx-documents"):
        for one in answer(name).workloads:
            kv = one.kv
            if one.decision == "split":
                assert kv.decision == "move"
            elif one.predicted.prefix_hit_rate > 0.0:
                assert kv.break_even_bandwidth is not None
                assert kv.link_bandwidth is not None
                pays = kv.link_bandwidth > CONGESTION * kv.break_even_bandwidth
                assert kv.decision == ("move" if pays else "recompute")
            else:
                assert kv.decision == "none"


def test_the_headroom_is_where_the_promise_breaks() -> None:
    case = shipped("quickstart")
    (chat,) = answer("quickstart").workloads
    ratio = answer("quickstart").sensitivities[0].flips_at
    assert ratio is not None
    assert ratio > 1.0
    assert chat.revisit_when[0].threshold == pytest.approx(ratio * chat.predicted.offered_rps, rel=1e-4)
    kept, broken = (
        recommend(changed(case, "workloads.chat.traffic.rate", 10.0 * ratio * factor)) for factor in (0.99, 1.03)
    )

    def plan(of: Recommendation) -> list[object]:
        """What runs: more load may be met by other settings before it takes more accelerators."""
        pools = of.workloads[0].pools
        return [(one.layout, one.replicas, one.max_batch, one.token_budget) for one in pools]

    assert plan(kept) == plan(answer("quickstart"))
    assert plan(broken) != plan(answer("quickstart"))


def test_a_task_of_several_calls_costs_more_than_its_calls() -> None:
    case = changed(shipped("quickstart"), "workloads.chat.task.calls", 4)
    (chat,) = recommend(case).workloads
    assert chat.cost.per_request is not None
    assert chat.cost.per_successful_task is not None
    share = chat.predicted.goodput_share
    assert share is not None
    assert chat.cost.per_successful_task == pytest.approx(chat.cost.per_request * 4 / share**4)


def test_cost_per_token_uses_the_days_tokens() -> None:
    (chat,) = answer("quickstart").workloads
    tokens = 10.0 * 86_400.0 * 220.0
    assert chat.cost.per_million_output_tokens == pytest.approx(chat.cost.per_hour * 24.0 / tokens * 1e6, rel=1e-6)
    nightly = plan("orbit", "nightly").cost
    assert nightly.per_million_output_tokens == pytest.approx(nightly.per_hour * 24.0 / 200e6 * 1e6, rel=1e-6)


def test_availability_is_told_where_failures_are_known() -> None:
    assert plan("quickstart", "chat").failure.availability is None
    known = plan("orbit", "chat").failure.availability
    assert known is not None
    assert 0.999 < known < 1.0
    assert plan("orbit", "nightly").failure.availability is None


def test_after_a_lost_node_the_share_is_that_of_the_replicas_left() -> None:
    for one in answer("orbit").workloads:
        lost = one.failure.one_node_lost
        (pool,) = one.pools
        held = round((1.0 - lost.capacity_share) * pool.replicas)
        assert 1 <= held <= pool.spare_replicas
        if lost.goodput_share is not None:
            assert one.predicted.goodput_share_required is not None
            assert lost.goodput_share >= one.predicted.goodput_share_required
