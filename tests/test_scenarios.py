"""Every shipped scenario is sound, and Orbit's figures are those of the traces."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from planner.spec.card import read_document
from planner.spec.catalog import resolve
from planner.spec.folders import Catalog
from planner.spec.scenario import Lengths, Scenario, WorkloadSpec
from planner.workload.stats import bins, summarise

ROOT = Path(__file__).resolve().parents[1]
PATHS = sorted((ROOT / "scenarios").glob("*.yaml"))


def orbit() -> dict[str, WorkloadSpec]:
    scenario = read_document(ROOT / "scenarios" / "orbit.yaml", Scenario)
    return {work.name: work for work in scenario.workloads}


def trace_statistics() -> ModuleType:
    spec = spec_from_file_location("trace_statistics", ROOT / "benchmarks" / "trace_statistics.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_case_and_the_first_steps_are_shipped() -> None:
    assert {"orbit", "quickstart"} <= {path.stem for path in PATHS}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_scenario_reads_and_bears_its_files_name(path: Path) -> None:
    scenario = read_document(path, Scenario)
    assert scenario.name == path.stem
    assert scenario.title
    assert scenario.notes


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_scenarios_cards_exist_and_fulfil_its_wishes(path: Path) -> None:
    scenario = read_document(path, Scenario)
    case = resolve(scenario, Catalog((ROOT,)), path)
    assert set(case.models) == {work.model for work in scenario.workloads}
    assert set(case.hardware) == set(case.efficiencies) == {line.hardware for line in scenario.cluster.inventory}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_scenarios_workloads_carry_their_daily_requests(path: Path) -> None:
    for work in read_document(path, Scenario).workloads:
        numbers = summarise(work)
        assert numbers.hourly.mean() == pytest.approx(numbers.mean_rate, rel=1e-12)
        assert numbers.peak_rate >= numbers.hourly.max() * (1 - 1e-12)
        assert (numbers.dispersion >= 1).all()


def test_orbit_reads_two_billion_tokens_a_night() -> None:
    nightly = summarise(orbit()["nightly"])
    assert nightly.documents is not None
    assert nightly.documents * nightly.input.mean == pytest.approx(2e9)
    assert nightly.documents * nightly.output.mean == pytest.approx(2e8)
    assert np.flatnonzero(nightly.hourly).tolist() == [0, 1, 2, 3, 4, 5, 22, 23]


def test_orbits_longest_agent_request_fits_the_stretched_context() -> None:
    agents = orbit()["agents"].lengths
    assert agents.input.quantiles is not None
    assert agents.output.quantiles is not None
    assert agents.input.quantiles[100] + agents.output.quantiles[100] <= 131_072


@pytest.mark.parametrize("name", ["chat", "agents", "code"])
def test_orbits_length_tables_are_close_to_their_means(name: str) -> None:
    for side in (orbit()[name].lengths.input, orbit()[name].lengths.output):
        unscaled = bins(Lengths(quantiles=side.quantiles)).mean
        assert unscaled == pytest.approx(side.mean, rel=0.06)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["chat", "agents", "code"])
def test_orbits_lengths_are_those_of_the_traces(name: str) -> None:
    script = trace_statistics()
    trace = script.traces(script.shared_folder())[name]
    written = orbit()[name].lengths
    for side, tokens in ((written.input, trace.input), (written.output, trace.output)):
        mean, marks = script.lengths(tokens)
        assert side.mean == round(mean, 2)
        assert side.quantiles == {level: round(mark) for level, mark in marks.items()}


@pytest.mark.shared
@pytest.mark.parametrize("name", ["chat", "code"])
def test_orbits_burstiness_is_that_of_the_traces(name: str) -> None:
    script = trace_statistics()
    trace = script.traces(script.shared_folder())[name]
    got = script.superposed(trace) if name == "code" else script.figures(trace.times, float(trace.times[-1]))
    traffic = orbit()[name].traffic
    assert traffic is not None
    written = traffic.burstiness
    assert got.grid is None
    assert written.measured_rate == round(got.rate, 4)
    assert [written.dispersion_1s, written.dispersion_10s, written.dispersion_60s] == [
        round(got.dispersion[window], 2) for window in (1, 10, 60)
    ]


@pytest.mark.shared
def test_the_rounded_grid_of_the_agents_trace_is_seen_through() -> None:
    script = trace_statistics()
    times = script.traces(script.shared_folder())["agents"].times
    got = script.figures(times, float(times[-1]))
    traffic = orbit()["agents"].traffic
    assert traffic is not None
    assert got.grid == pytest.approx(3.0, abs=0.01)
    assert got.dispersion[1] > 7
    assert traffic.burstiness.measured_rate == round(got.rate, 4)
    assert script.gridded_dispersion(times, 1) == pytest.approx(1.10, abs=0.005)
    assert traffic.burstiness.dispersion_10s == round(script.gridded_dispersion(times, 3), 2)
    assert traffic.burstiness.dispersion_60s == round(script.gridded_dispersion(times, 20), 2)


@pytest.mark.shared
def test_orbits_hit_rate_is_that_of_the_replayed_trace() -> None:
    script = trace_statistics()
    replayed = script.hit_rates(script.traces(script.shared_folder())["agents"])
    sharing = orbit()["agents"].sharing
    assert sharing.hit_rate == round(replayed[5_120_000], 4)
    assert sharing.prefix_share == round(replayed[float("inf")], 4)
