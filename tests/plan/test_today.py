"""What runs today is judged by the same model as the plan."""

from functools import lru_cache

import pytest

from planner.plan.changes import changed
from planner.plan.subjects import members
from planner.plan.today import Today, today
from planner.spec.catalog import Case, Catalog, resolve
from planner.spec.scenario import CurrentPool, LayoutSpec


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


def running(case: Case, *pools: CurrentPool) -> tuple[Today, ...]:
    case = changed(case, "cluster.current", pools)
    return today(case, members(case))


def test_orbit_keeps_its_promises_today_on_all_nodes() -> None:
    now = today(shipped("orbit"), members(shipped("orbit")))
    assert [one.workloads for one in now] == [("chat", "nightly"), ("agents",), ("code",)]
    assert sum(one.accelerators for one in now) == 128
    for one in now:
        assert one.problem is None
        assert all(share > 0.95 for share in one.share.values())


def test_a_layout_that_cannot_be_loaded_says_why() -> None:
    pool = CurrentPool(workloads=("agents",), layout=LayoutSpec(tp=8), replicas=4)
    (one,) = running(shipped("orbit"), pool)
    assert one.share == {}
    assert one.problem is not None
    assert "quantisation block" in one.problem
    assert "cannot be loaded" in one.line("agents")


def test_more_replicas_keep_no_less() -> None:
    shares = []
    for count in (1, 2, 4):
        (one,) = running(
            changed(shipped("quickstart"), "workloads.chat.traffic.rate", 25.0),
            CurrentPool(workloads=("chat",), layout=LayoutSpec(), replicas=count),
        )
        shares.append(one.share["chat"])
        assert one.accelerators == count
        assert f"{count} x TP1" in one.line("chat")
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


def test_a_smaller_batch_limit_is_heeded() -> None:
    rest = {"workloads": ("chat",), "layout": LayoutSpec(), "replicas": 1}
    (free,) = running(shipped("quickstart"), CurrentPool.model_validate(rest))
    (tight,) = running(shipped("quickstart"), CurrentPool.model_validate(rest | {"max_batch": 4}))
    assert tight.share["chat"] < free.share["chat"]


def test_only_interactive_mixed_pools_are_judged() -> None:
    night = CurrentPool(workloads=("nightly",), layout=LayoutSpec(tp=8), replicas=2)
    decode = CurrentPool(workloads=("chat",), role="decode", layout=LayoutSpec(tp=8), replicas=2)
    assert running(shipped("orbit"), night, decode) == ()


@pytest.mark.parametrize("name", ["quickstart", "rtx-documents"])
def test_without_pools_there_is_nothing_to_judge(name: str) -> None:
    assert today(shipped(name), members(shipped(name))) == ()
