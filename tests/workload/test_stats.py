"""Laws of length bins, rates and mixtures."""

from math import erf, exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.spec.scenario import Burstiness, Lengths, WorkloadSpec
from planner.workload.stats import bins, deadline_rates, edges, merge, rescaled_dispersion, summarise

counts = st.integers(1, 40)
sizes = st.floats(1, 1e5)


@st.composite
def tables(draw: st.DrawFn) -> Lengths:
    inner = draw(st.lists(st.floats(0.01, 99.99), max_size=10, unique=True))
    levels = [0.0, *sorted(inner), 100.0]
    marks = sorted(draw(st.lists(sizes, min_size=len(levels), max_size=len(levels))))
    return Lengths(quantiles=dict(zip(levels, marks, strict=True)))


def workload(**changes: Any) -> WorkloadSpec:
    document: dict[str, Any] = {
        "name": "chat",
        "model": "any",
        "traffic": {"rate": "10 req/s"},
        "lengths": {"input": {"constant": 1000}, "output": {"constant": 100}},
        "promise": {"ttft": "500 ms", "tpot": "50 ms", "share": 0.9},
    }
    return WorkloadSpec.model_validate(document | changes)


def table_mean(lengths: Lengths) -> float:
    assert lengths.quantiles is not None
    levels = sorted(lengths.quantiles)
    return float(np.trapezoid([lengths.quantiles[level] for level in levels], np.array(levels) / 100))


@given(count=counts)
def test_edges_rise_from_zero_to_one(count: int) -> None:
    cut = edges(count)
    assert len(cut) == count + 1
    assert (cut[0], cut[-1]) == (0, 1)
    assert (np.diff(cut) > 0).all()


def test_a_distribution_needs_a_bin() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        edges(0)


@given(lengths=tables(), count=counts)
def test_bins_of_a_table_keep_its_mean_and_order(lengths: Lengths, count: int) -> None:
    cut = bins(lengths, count)
    assert cut.share.sum() == pytest.approx(1, rel=1e-12)
    assert cut.mean == pytest.approx(table_mean(lengths), rel=1e-9)
    assert (np.diff(cut.value) >= 0).all()
    assert cut.value[0] >= 1
    assert cut.maximum == cut.value[-1]


@given(lengths=tables(), factor=st.floats(1, 50))
def test_a_table_is_scaled_to_a_mean_beside_it(lengths: Lengths, factor: float) -> None:
    mean = table_mean(lengths) * factor
    cut = bins(Lengths(mean=mean, quantiles=lengths.quantiles))
    np.testing.assert_allclose(cut.value, bins(lengths).scaled(factor).value, rtol=1e-9)


@given(mean=st.floats(1, 20), low=st.floats(0.01, 1), high=st.floats(1, 1e4))
def test_no_request_is_shorter_than_a_token_and_the_mean_stays(mean: float, low: float, high: float) -> None:
    cut = bins(Lengths(mean=mean, quantiles={0: low, 50: low, 100: high}))
    assert cut.value.min() >= 1
    assert cut.mean == pytest.approx(mean, rel=1e-9)


@given(spread=st.floats(0.1, 4), longest=st.floats(3000, 1e5))
def test_a_tail_is_cut_at_the_longest_length_and_nowhere_else(spread: float, longest: float) -> None:
    free = Lengths(p50=1000, p90=min(2999, 1000 * exp(spread)))
    cut, whole = bins(free.model_copy(update={"longest": longest})), bins(free)
    np.testing.assert_array_equal(cut.value, np.minimum(whole.value, longest))
    np.testing.assert_array_equal(cut.share, whole.share)


@given(centre=st.floats(2, 9), spread=st.floats(0.05, 1.5), count=st.integers(2, 40))
def test_bins_of_a_lognormal_keep_its_mean(centre: float, spread: float, count: int) -> None:
    cut = bins(Lengths(p50=exp(centre), mean=exp(centre + spread**2 / 2)), count)
    assert cut.mean == pytest.approx(exp(centre + spread**2 / 2), rel=1e-9)
    assert (np.diff(cut.value) >= 0).all()


@given(lengths=tables(), count=st.integers(1, 20))
def test_bins_lose_spread_and_never_add_it(lengths: Lengths, count: int) -> None:
    fine = bins(lengths, 400)
    assert bins(lengths, count).second <= fine.second * (1 + 1e-3)
    assert fine.second >= fine.mean**2 * (1 - 1e-12)


def test_sixteen_bins_hold_the_second_moment_of_usual_lengths() -> None:
    centre, spread = log(1000), 0.86
    second = exp(2 * centre + 2 * spread**2)
    assert bins(Lengths(p50=1000, mean=1000 * exp(spread**2 / 2))).second == pytest.approx(second, rel=0.015)


@given(centre=st.floats(0, 10), spread=st.floats(0.01, 1.2))
def test_any_two_figures_of_a_lognormal_give_it_back(centre: float, spread: float) -> None:
    figures = {
        "mean": exp(centre + spread**2 / 2),
        "p50": exp(centre),
        "p90": exp(centre + 1.2815515655446004 * spread),
        "p99": exp(centre + 2.3263478740408408 * spread),
    }
    pairs = [("mean", "p50"), ("mean", "p90"), ("mean", "p99"), ("p50", "p90"), ("p50", "p99"), ("p90", "p99")]
    for pair in pairs:
        solved = Lengths.model_validate({name: figures[name] for name in pair}).lognormal()
        assert solved == pytest.approx((centre, spread), rel=1e-4, abs=1e-4)
    assert 0.5 + erf(1.2815515655446004 / sqrt(2)) / 2 == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("figures", "complaint"),
    [
        ({"mean": 1155, "p90": 2735}, "no lognormal has both"),
        ({"mean": 100, "p50": 120}, "no lognormal has both"),
        ({"mean": 1000, "p90": 900}, "percentiles must rise"),
        ({"p50": 100, "p90": 90}, "percentiles must rise"),
        ({"mean": 100, "p50": 90, "p90": 200}, "give two of"),
        ({"mean": 100}, "give two of"),
    ],
)
def test_figures_without_a_lognormal_are_refused(figures: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Lengths.model_validate(figures)


@given(documents=st.integers(1, 10**7), start=st.floats(0, 86_399), deadline=st.floats(60, 3 * 86_400))
def test_a_deadline_run_carries_all_documents(documents: int, start: float, deadline: float) -> None:
    hourly, rate = deadline_rates(documents, start, deadline)
    assert hourly.sum() * 3600 == pytest.approx(documents, rel=1e-9)
    assert rate * deadline == pytest.approx(documents, rel=1e-12)
    assert (hourly >= 0).all()


@given(index=st.floats(1, 200), measured=st.floats(0.1, 100), offered=st.floats(0.01, 1000))
def test_thinning_calms_and_copies_leave_as_it_is(index: float, measured: float, offered: float) -> None:
    said = Burstiness.model_validate({"dispersion_1s": index, "measured_rate": f"{measured:.6f} req/s"})
    got = float(rescaled_dispersion(said, offered)[0])
    assert 1 <= got <= index * (1 + 1e-12)
    if offered >= measured * 1.001:
        assert got == pytest.approx(index)


def test_an_unstated_measured_rate_keeps_the_dispersion() -> None:
    said = Burstiness(dispersion_1s=3, dispersion_10s=4, dispersion_60s=5)
    assert rescaled_dispersion(said, 0.001).tolist() == [3, 4, 5]


def test_a_profile_sets_the_busiest_hour() -> None:
    profile = [1.0] * 12 + [3.0] * 12
    got = summarise(workload(traffic={"rate": "10 req/s", "profile": profile}))
    assert got.hourly.tolist() == [5.0] * 12 + [15.0] * 12
    assert (got.mean_rate, got.peak_rate) == (10, 15)


def test_a_peak_without_a_profile_has_no_hour() -> None:
    got = summarise(workload(traffic={"rate": "10 req/s", "peak_to_mean": 2}))
    assert got.peak_rate == 20
    assert got.hourly.tolist() == [10.0] * 24


def test_promises_come_along() -> None:
    got = summarise(workload())
    assert (got.ttft, got.tpot, got.share, got.percentile) == (0.5, 0.05, 0.9, 90.0)
    assert (got.deadline, got.start, got.documents) == (None, None, None)


def test_a_deadline_workload_is_even_and_has_no_burst() -> None:
    got = summarise(workload(traffic=None, batch={"documents": 28_800}, promise={"deadline": "8 h", "start": "22:00"}))
    assert got.peak_rate == 1.0
    assert got.mean_rate == pytest.approx(1 / 3)
    assert got.dispersion.tolist() == [1, 1, 1]


@given(lengths=tables(), rates=st.lists(st.floats(0.1, 100), min_size=1, max_size=4))
def test_a_mixture_adds_rates_and_weighs_lengths(lengths: Lengths, rates: list[float]) -> None:
    assume(lengths.quantiles is not None)
    parts = [
        summarise(workload(traffic={"rate": f"{rate:.6f} req/s"}, lengths={"input": side, "output": {"constant": 10}}))
        for rate, side in zip(rates, [lengths, Lengths(constant=500)] * 2, strict=False)
    ]
    pool = merge(parts)
    total = sum(part.mean_rate for part in parts)
    assert pool.mean_rate == pytest.approx(total)
    assert pool.peak_rate == pytest.approx(total)
    assert pool.input.share.sum() == pytest.approx(1)
    assert pool.input.mean == pytest.approx(sum(p.mean_rate * p.input.mean for p in parts) / total, rel=1e-9)
    assert (np.diff(pool.input.value) >= 0).all()


def test_a_pools_peak_is_the_peak_of_the_sum() -> None:
    day = summarise(workload(traffic={"rate": "10 req/s", "profile": [0.0] * 12 + [2.0] * 12}))
    night = summarise(workload(traffic={"rate": "10 req/s", "profile": [2.0] * 12 + [0.0] * 12}))
    pool = merge([day, night])
    assert pool.peak_rate == pytest.approx(20)
    assert pool.hourly.tolist() == [20.0] * 24


def test_a_pools_hit_rate_is_weighed_by_tokens() -> None:
    cold = summarise(workload(lengths={"input": {"constant": 3000}, "output": {"constant": 10}}))
    warm = summarise(workload(sharing={"hit_rate": 0.8}))
    assert merge([cold, warm]).hit_rate == pytest.approx(0.2)


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one workload"):
        merge([])
