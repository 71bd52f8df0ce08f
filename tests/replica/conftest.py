"""Subjects to evaluate: the quickstart and the workloads of Orbit, each alone, under three engines."""

from collections.abc import Callable
from functools import lru_cache

import pytest

from planner.plan.subjects import members, subject
from planner.replica.candidates import Bench, Replicas, Role, Subject, candidates, prepare
from planner.spec.catalog import Case, Catalog, resolve
from planner.spec.scenario import EngineChoice

Named = Callable[[str], Subject]
WORKLOADS = {"chat": "quickstart", "agents": "orbit", "code": "orbit", "nightly": "orbit"}
"""A dense model, experts in blocks, adapters, and constant lengths."""


@lru_cache(maxsize=8)
def _case(name: str, engine: str) -> Case:
    catalog = Catalog()
    scenario = catalog.scenario(name)
    if engine != scenario.engine.name:
        version = catalog.engine(engine).versions[-1].since
        scenario = scenario.model_copy(update={"engine": EngineChoice(name=engine, version=version)})
    return resolve(scenario, catalog)


@lru_cache(maxsize=16)
def _subject(name: str, engine: str) -> Subject:
    case = _case(WORKLOADS[name], engine)
    of = [member for member in members(case) if member.spec.name == name]
    return subject(case, case.scenario.cluster.inventory[0], of)


@lru_cache(maxsize=16)
def _bench(name: str, engine: str) -> Bench:
    return prepare(_subject(name, engine), 16)


@pytest.fixture(scope="session")
def subject_of() -> Callable[..., Subject]:
    def make(name: str, engine: str = "vllm") -> Subject:
        return _subject(name, engine)

    return make


@pytest.fixture(scope="session")
def bench_of() -> Callable[..., Bench]:
    """Everything that the roles share, in layouts of up to 16 accelerators."""

    def make(name: str, engine: str = "vllm") -> Bench:
        return _bench(name, engine)

    return make


@pytest.fixture(scope="session")
def replicas_of() -> Callable[..., Replicas]:
    """Candidates of a role."""

    @lru_cache(maxsize=32)
    def make(name: str, role: Role = "mixed", engine: str = "vllm") -> Replicas:
        return candidates(_bench(name, engine), role)

    return make
