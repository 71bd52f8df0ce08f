"""Pools of the quickstart, as goodput rows."""

from dataclasses import replace

import numpy as np
import pytest

from planner.fleet.pools import rows_of
from planner.fleet.waiting import Rows
from planner.plan.changes import changed
from planner.plan.subjects import members, subject
from planner.replica.candidates import Replicas, Role, evaluate
from planner.spec.catalog import Case, Catalog, resolve


@pytest.fixture(scope="session")
def quickstart() -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario("quickstart"), catalog)


@pytest.fixture(scope="session")
def poisson(quickstart: Case) -> Case:
    """The quickstart with arrivals at random: no burst in any window."""
    steady = {"dispersion_1s": 1.0, "dispersion_10s": 1.0, "dispersion_60s": 1.0}
    for name, value in steady.items():
        quickstart = changed(quickstart, f"workloads.chat.traffic.burstiness.{name}", value)
    return quickstart


class ByRole(dict[Role, Rows]):
    """Goodput rows of each role; hypothesis shows it where a law fails, so it is brief."""

    def __repr__(self) -> str:
        return f"rows of {', '.join(self)}"


def candidates(case: Case, role: Role) -> Replicas:
    stock = case.scenario.cluster.inventory[0]
    return evaluate(subject(case, stock, members(case)), role, 8)


def usable(replicas: Replicas, step: int = 9) -> Rows:
    """A sample of the candidates that an engine can load."""
    return rows_of(replicas, np.flatnonzero(replicas.rejected == 0)[::step])


@pytest.fixture(scope="session")
def replicas(quickstart: Case) -> dict[Role, Replicas]:
    roles: tuple[Role, ...] = ("mixed", "prefill", "decode")
    return {role: candidates(quickstart, role) for role in roles}


@pytest.fixture(scope="session")
def rows(replicas: dict[Role, Replicas]) -> dict[Role, Rows]:
    return ByRole({role: usable(of) for role, of in replicas.items()})


@pytest.fixture(scope="session")
def one_lane(poisson: Case) -> Rows:
    """A prefill pool of one lane under Poisson arrivals, TP1 with the engine's own budget."""
    of = candidates(poisson, "prefill")
    table = of.machine.layouts
    single = (table.accelerators[of.row] == 1) & (of.rejected == 0)
    row = rows_of(of, np.flatnonzero(single)[:1])
    assert row.work is not None
    assert row.work.lanes.tolist() == [1.0]
    return replace(row, handling=0.0)
