"""Closed forms against an independent simulator (Ciw), and bursty gaps against a plain event loop."""

from heapq import heapreplace

import ciw
import numpy as np
import pytest

from planner.queueing.erlang import mmc_wait
from planner.queueing.general import md1_wait, mg1_wait
from planner.queueing.renewal import gig_c_wait, gim_c_wait


def simulated_wait(arrivals: object, service: object, servers: int, seed: int) -> float:
    """Mean wait of the requests that arrive in [200, 8000]."""
    network = ciw.create_network(
        arrival_distributions=[arrivals], service_distributions=[service], number_of_servers=[servers]
    )
    ciw.seed(seed)
    run = ciw.Simulation(network)
    run.simulate_until_max_time(8000)
    return float(np.mean([r.waiting_time for r in run.get_all_records() if r.arrival_date >= 200]))


def test_exponential_service_at_four_servers() -> None:
    waits = [simulated_wait(ciw.dists.Exponential(2.8), ciw.dists.Exponential(1.0), 4, seed) for seed in range(3)]
    assert np.mean(waits) == pytest.approx(float(mmc_wait(4, 2.8, 1.0)), rel=0.06)


def test_constant_service() -> None:
    waits = [simulated_wait(ciw.dists.Exponential(0.7), ciw.dists.Deterministic(1.0), 1, seed) for seed in range(3)]
    assert np.mean(waits) == pytest.approx(float(md1_wait(0.7, 1.0)), rel=0.06)


def test_spread_service() -> None:
    service = ciw.dists.Gamma(0.5, 2.0)  # mean 1, SCV 2
    waits = [simulated_wait(ciw.dists.Exponential(0.6), service, 1, seed) for seed in range(3)]
    assert np.mean(waits) == pytest.approx(float(mg1_wait(0.6, 1.0, 2.0)), rel=0.08)


def event_loop(servers: int, gaps: list[float], works: list[float]) -> float:
    """Mean wait of first come, first served at equal servers."""
    free, now, total = [0.0] * servers, 0.0, 0.0
    for gap, work in zip(gaps, works, strict=True):
        now += gap
        start = max(now, free[0])
        total += start - now
        heapreplace(free, start + work)
    return total / len(gaps)


@pytest.mark.parametrize(
    ("servers", "rho", "gap_scv", "service_scv"), [(8, 0.8, 4.0, 0.25), (32, 0.8, 4.0, 0.25), (8, 0.6, 16.0, 0.25)]
)
def test_bursty_gaps(servers: int, rho: float, gap_scv: float, service_scv: float) -> None:
    """Exponential service behind the same gaps, known exactly, takes most of the noise out of the simulation."""
    rng = np.random.default_rng(7)
    count = 300_000
    gaps = rng.gamma(1 / gap_scv, gap_scv / (servers * rho), count).tolist()
    general = event_loop(servers, gaps, rng.gamma(1 / service_scv, service_scv, count).tolist())
    exponential = event_loop(servers, gaps, rng.exponential(1.0, count).tolist())
    exact = float(gim_c_wait(servers, servers * rho, 1.0, gap_scv).mean)
    assert exponential == pytest.approx(exact, rel=0.15)
    expected = float(gig_c_wait(servers, servers * rho, 1.0, gap_scv, service_scv).mean)
    assert general * exact / exponential == pytest.approx(expected, rel=0.05)
