"""Textbook and published values of the closed forms, to the digits in which they are stated."""

from collections.abc import Callable

import numpy as np
import pytest

from planner.numeric import Floats
from planner.queueing.bursts import fit_two_rates
from planner.queueing.erlang import (
    erlang_b,
    erlang_c,
    halfin_whitt,
    mmc_wait,
    mmc_wait_quantile,
    safety_staffing,
    servers_for_probability,
)
from planner.queueing.finite import batch_service_rates, mmck, state_dependent_queue
from planner.queueing.general import allen_cunneen, kingman, md1_wait, mg1_wait, mm1_wait, sakasegawa
from planner.queueing.parallel import crossover, pipeline_latency, tensor_latency
from planner.queueing.renewal import gig_c_wait, gim_c_wait
from planner.queueing.routing import choices_wait
from planner.queueing.tails import mg1_wait_quantile, wait_quantile

VALUES: list[tuple[str, Callable[[], Floats], float]] = [
    ("M/M/1", lambda: mm1_wait(0.8, 1.0), 4.0),
    ("M/D/1", lambda: md1_wait(0.8, 1.0), 2.0),
    ("M/G/1", lambda: mg1_wait(2.0, 0.3, 4.0), 1.125),
    ("Erlang B, 8 servers, load 6.4", lambda: erlang_b(8, 6.4), 0.1443939),
    ("Erlang B, 8 servers, load 10", lambda: erlang_b(8, 10.0), 0.3383184),
    ("Erlang C, 8 servers, load 6.4", lambda: erlang_c(8, 6.4), 0.4576449),
    ("Erlang C, 10 servers, load 8", lambda: erlang_c(10, 8.0), 0.4091802),
    ("Erlang C, 110 servers, load 100", lambda: erlang_c(110, 100.0), 0.2370075),
    ("M/M/8", lambda: mmc_wait(8, 6.4, 1.0), 0.2860281),
    ("M/M/10", lambda: mmc_wait(10, 8.0, 1.0), 0.2045901),
    ("M/M/8, 90 %", lambda: mmc_wait_quantile(0.90, 8, 6.4, 1.0), 0.9505771),
    ("M/M/8, 95 %", lambda: mmc_wait_quantile(0.95, 8, 6.4, 1.0), 1.3837941),
    ("M/M/8, 99 %", lambda: mmc_wait_quantile(0.99, 8, 6.4, 1.0), 2.3896928),
    ("Allen-Cunneen", lambda: allen_cunneen(8, 6.4, 1.0, 4.0, 0.25), 0.6078097),
    ("Sakasegawa", lambda: sakasegawa(8, 6.4, 1.0, 4.0, 0.25), 0.6441613),
    ("Kingman", lambda: kingman(0.8, 1.0, 4.0, 0.25), 8.5),
    ("Halfin-Whitt, 0.5", lambda: halfin_whitt(0.5), 0.5045386),
    ("Halfin-Whitt, 1", lambda: halfin_whitt(1.0), 0.2233613),
    ("Halfin-Whitt, 2", lambda: halfin_whitt(2.0), 0.0268814),
    ("Halfin-Whitt, inverse", lambda: safety_staffing(0.2), 1.0615163),
    ("DistServe, equation 1", lambda: pipeline_latency(6.0, 0.1), 0.175),
    ("DistServe, equation 2", lambda: pipeline_latency(6.0, 0.1, 2), 0.1107143),
    ("DistServe, equation 3", lambda: tensor_latency(6.0, 0.1, 1.5), 0.0888889),
    ("round robin over 8", lambda: gim_c_wait(1, 0.8, 1.0, 1 / 8).mean, 1.97973),
    ("two choices", lambda: choices_wait(0.8, 1.0), 0.94736),
    ("M/M/8/8", lambda: mmck(8, 10.0, 1.0, 8).blocked, 0.3383184),
]


@pytest.mark.parametrize(("form", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_a_closed_form_gives_its_stated_value(form: Callable[[], Floats], value: float) -> None:
    digits = len(str(value).split(".")[1])
    assert float(form()) == pytest.approx(value, abs=0.51 * 10**-digits)


def test_pooling_at_a_load_of_0_8() -> None:
    servers = np.array([1, 2, 4, 8, 16])
    np.testing.assert_allclose(mmc_wait(servers, 0.8 * servers, 1.0), [4.0, 1.778, 0.746, 0.286, 0.0953], atol=6e-4)


def test_fewest_servers_of_halfin_and_whitt() -> None:
    assert servers_for_probability([10, 50, 100, 400], 0.2).tolist() == [14, 58, 111, 422]


def test_distserve_crossover() -> None:
    speedup = [1.2, 1.3, 1.43, 1.5, 1.6, 1.7, 1.8, 1.9]
    expected = [0.434, 0.611, 0.824, 0.936, 1.095, 1.257, 1.429, 1.626]
    np.testing.assert_allclose(crossover(speedup), expected, atol=6e-4)


@pytest.mark.parametrize(
    ("rate", "one", "pipeline", "tensor"),
    [(5.0, 0.150, 0.10833, 0.08333), (8.0, 0.300, 0.11667, 0.10476), (12.0, np.inf, 0.1375, 0.2000)],
)
def test_distserve_latencies(rate: float, one: float, pipeline: float, tensor: float) -> None:
    times = [pipeline_latency(rate, 0.1), pipeline_latency(rate, 0.1, 2), tensor_latency(rate, 0.1, 1.5)]
    np.testing.assert_allclose(times, [one, pipeline, tensor], atol=6e-6)


def test_round_robin_tail() -> None:
    """E8/M/1: those who wait do so exponentially, so the approximation of the tail is exact."""
    waits = gim_c_wait(1, 0.8, 1.0, 1 / 8)
    assert float(waits.probability) == pytest.approx(0.664399, abs=6e-7)
    assert float(wait_quantile(0.99, waits.mean, waits.probability)) == pytest.approx(12.504, abs=6e-4)


@pytest.mark.parametrize(
    ("mean", "probability", "value"),
    [(2.0, 0.8, 10.96), (1.125, 0.6, 7.68), (0.6078097, 0.4576449, 5.08)],
)
def test_approximate_quantiles(mean: float, probability: float, value: float) -> None:
    assert float(wait_quantile(0.99, mean, probability)) == pytest.approx(value, abs=6e-3)


def test_exact_quantile_of_constant_service() -> None:
    """Simulated with two million requests: 10.35."""
    assert float(mg1_wait_quantile(0.99, 0.8, [1.0], [1.0])) == pytest.approx(10.35, rel=2e-3)


def test_state_dependent_batches() -> None:
    """The worked case of the llm-inferno form: step times linear in the batch, 128 tokens in and 64 out."""
    batch = np.arange(1, 9)
    rates = batch_service_rates(0.0052 + 0.00001 * 128 * batch, 0.02058 + 0.00041 * batch, 64)
    expected = [0.7525, 1.4750, 2.1691, 2.8365, 3.4788, 4.0972, 4.6932, 5.2679]
    np.testing.assert_allclose(rates, expected, atol=6e-5)
    queue = state_dependent_queue(np.array([2.0, 4.0]), rates, room=24)
    np.testing.assert_allclose(queue.sojourn, [1.40812, 1.75699], atol=6e-6)
    np.testing.assert_allclose(queue.wait, [0.003411, 0.277312], atol=6e-7)
    assert queue.throughput[1] == pytest.approx(3.99954, abs=6e-6)
    assert queue.blocked[1] == pytest.approx(1.152e-4, abs=6e-8)


@pytest.mark.parametrize(("arrival_scv", "service_scv", "simulated"), [(4.0, 0.25, 0.930), (16.0, 1.0, 4.15)])
def test_bursty_gaps_within_five_percent_of_simulation(
    arrival_scv: float, service_scv: float, simulated: float
) -> None:
    """Eight servers at rho 0.8 behind gamma gaps, where Allen-Cunneen is more than 30 % low."""
    assert float(gig_c_wait(8, 6.4, 1.0, arrival_scv, service_scv).mean) == pytest.approx(simulated, rel=0.05)
    assert float(allen_cunneen(8, 6.4, 1.0, arrival_scv, service_scv)) < 0.7 * simulated


def test_bursts_of_the_azure_conversation_trace() -> None:
    """Fitted at 10 s and 60 s, two rates predict a dispersion at 1 s of 1.3; measured on the trace: 1.39."""
    stream = fit_two_rates(5.53, (10.0, 60.0), (3.86, 16.1))
    np.testing.assert_allclose([stream.dispersion(10.0), stream.dispersion(60.0)], [3.86, 16.1], rtol=1e-9)
    assert float(stream.dispersion(1.0)) == pytest.approx(1.39, rel=0.1)
