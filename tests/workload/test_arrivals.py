"""Laws of arrival measures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.workload.arrivals import (
    golden_shifts,
    gridded_dispersion,
    index_of_dispersion,
    length_quantiles,
    quantised_grid,
    superpose,
)

SEED = 20_231_116


def poisson(rate: float, horizon: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    generator = np.random.default_rng(SEED)
    return np.sort(generator.uniform(0, horizon, generator.poisson(rate * horizon)))


def bursts(rate: float, size: int, horizon: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.repeat(poisson(rate / size, horizon), size)


@pytest.mark.parametrize("window", [1.0, 10.0, 60.0])
def test_a_poisson_stream_has_dispersion_one(window: float) -> None:
    times = poisson(5.0, 200_000.0)
    spread = (2 * window / 200_000.0) ** 0.5  # standard error of a variance ratio over so many windows
    assert index_of_dispersion(times, window) == pytest.approx(1, abs=4 * spread)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_bursts_of_k_have_dispersion_k(size: int) -> None:
    assert index_of_dispersion(bursts(5.0, size, 100_000.0), 10.0) == pytest.approx(size, rel=0.06)


@pytest.mark.parametrize("copies", [2, 7, 12])
def test_shifted_copies_keep_the_dispersion(copies: int) -> None:
    times, horizon = bursts(2.0, 8, 50_000.0), 50_000.0
    once = index_of_dispersion(times, 10.0)
    many = superpose(times, golden_shifts(copies, horizon), horizon)
    assert len(many) == copies * len(times)
    assert index_of_dispersion(many, 10.0) == pytest.approx(once, rel=0.12)


@given(shift=st.floats(-500, 500), copies=st.integers(1, 5))
def test_a_superposition_stays_on_the_circle(shift: float, copies: int) -> None:
    many = superpose([1.0, 2.0, 50.0], [shift] * copies, 100.0)
    assert len(many) == 3 * copies
    assert (np.diff(many) >= 0).all()
    assert many.min() >= 0
    assert many.max() <= 100


def test_shifts_by_the_golden_ratio_leave_no_large_gap() -> None:
    gaps = np.diff(np.append(np.sort(golden_shifts(12, 1.0)), 1.0))
    assert gaps.max() < 2 / 12
    assert len(set(gaps.round(9))) > 1


def test_a_short_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="two windows of 60 s"):
        index_of_dispersion([0, 30, 90], 60.0)
    with pytest.raises(ValueError, match="two windows of 4"):
        gridded_dispersion([0, 3, 6], 4)


@given(step=st.floats(0.5, 20))
def test_rounding_fakes_burstiness_and_shows_its_grid(step: float) -> None:
    times = np.floor(poisson(10.0 / step, 3000.0 * step) / step) * step
    assert quantised_grid(times) == pytest.approx(step)
    assert index_of_dispersion(times + step / 4, step / 3) > 4
    assert gridded_dispersion(times, 1) == pytest.approx(1, abs=0.12)


def test_exact_stamps_have_no_grid() -> None:
    assert quantised_grid(poisson(10.0, 1000.0)) is None
    assert quantised_grid([0.0, 0.0, 1.0]) is None
    assert quantised_grid(np.arange(100.0)) is None


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=50))
def test_quantiles_run_from_the_least_to_the_largest(lengths: list[int]) -> None:
    marks = length_quantiles(lengths, [0, 50, 100])
    assert (marks[0], marks[50], marks[100]) == (min(lengths), float(np.median(lengths)), max(lengths))
