"""What runs today, judged by the same model, so that a plan can be held against it."""

from dataclasses import dataclass

import numpy as np

from planner.engine.layouts import Layouts, legality
from planner.engine.reasons import DESCRIPTIONS
from planner.fleet.percentiles import Stage, joint
from planner.fleet.pools import rows_of
from planner.plan.offers import PoolChoice
from planner.plan.subjects import Member, subject
from planner.replica.candidates import bench, judge
from planner.spec.catalog import Case
from planner.spec.scenario import CurrentPool


@dataclass(frozen=True, slots=True)
class Today:
    """One pool that runs today."""

    workloads: tuple[str, ...]
    layout: str
    replicas: int
    accelerators: int
    share: dict[str, float]
    """Share of each interactive workload that keeps its promise; empty where the pool cannot be loaded."""
    problem: str | None
    """Why the engine could not load it."""

    def line(self, name: str) -> str:
        """Say what today's pool does for a workload."""
        start = f"today: {self.replicas} x {self.layout} on {self.accelerators} accelerators"
        if self.problem:
            return f"{start}, which cannot be loaded: {self.problem}"
        if name in self.share:
            return f"{start}, {100.0 * self.share[name]:.1f} % within the promise"
        return start


def _judge(case: Case, pool: CurrentPool, of: list[Member]) -> Today:
    """Judge a mixed pool under the traffic of its interactive workloads."""
    stock = case.scenario.cluster.inventory[0]
    served = subject(case, stock, of)
    scheduling = served.engine.scheduling
    table = Layouts.of([(pool.layout.tp, pool.layout.pp, pool.layout.dp, pool.layout.ep)])
    legal = legality(served.model, served.checkpoint, table, served.chip, served.engine.parallelism)
    limits = (
        np.array([pool.max_batch or scheduling.max_batch]),
        np.array([pool.token_budget or scheduling.token_budget]),
    )
    one = judge(bench(served, table, legal), "mixed", (np.zeros(1, np.int64), limits[1], limits[0]))
    running = PoolChoice(one, 0, pool.replicas, 0)
    bits = int(one.rejected[0])
    if bits:
        text = ", ".join(words for reason, words in DESCRIPTIONS.items() if bits & int(reason))
        return Today(pool.workloads, running.layout, running.count, running.accelerators, {}, text)
    share = joint((Stage(rows_of(one, np.zeros(1, np.int64)), pool.replicas),))
    names = [member.spec.name for member in of]
    held = {name: float(value) for name, value in zip(names, share, strict=True)}
    return Today(pool.workloads, running.layout, running.count, running.accelerators, held, None)


def today(case: Case, all_members: tuple[Member, ...]) -> tuple[Today, ...]:
    """Judge all mixed pools of ``cluster.current`` that serve interactive workloads of one model."""
    known = {member.spec.name: member for member in all_members}
    out = []
    for pool in case.scenario.cluster.current:
        of = [known[name] for name in pool.workloads if known[name].interactive]
        if pool.role == "mixed" and of and len({member.spec.model for member in of}) == 1:
            out.append(_judge(case, pool, of))
    return tuple(out)
