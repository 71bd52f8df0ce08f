"""What is drawn has the moments that it is drawn for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spec.scenario import Lengths
from planner.workload.sampling import draw_arrivals, draw_lengths
from planner.workload.stats import bins


@pytest.mark.parametrize(
    ("lengths", "median"),
    [
        (Lengths(constant=300), 300.0),
        (Lengths(quantiles={0: 1, 50: 100, 90: 800, 100: 4000}), 100.0),
        (Lengths(quantiles={0: 1, 50: 100, 100: 4000}, mean=700), 66.65),
        (Lengths(p50=500, p90=2000), 500.0),
        (Lengths(p50=500, p90=3000, longest=5000), 500.0),
    ],
    ids=str,
)
def test_lengths_have_the_mean_the_median_and_the_spread_of_the_bins(lengths: Lengths, median: float) -> None:
    drawn = draw_lengths(lengths, np.random.default_rng(2), 400_000)
    like = bins(lengths)
    assert drawn.min() >= 1
    assert drawn.mean() == pytest.approx(like.mean, rel=0.02)
    # Bins lose the variance within them.
    assert (drawn.astype(float) ** 2).mean() >= like.second * 0.99
    assert np.quantile(drawn, 0.5) == pytest.approx(median, rel=0.02)


@given(st.floats(2.0, 60.0), st.floats(1.0, 20.0), st.integers(0, 99))
def test_arrivals_come_at_their_rate_and_in_order(rate: float, bursts: float, seed: int) -> None:
    times = draw_arrivals(rate, np.array([1.0, bursts, bursts]), np.random.default_rng(seed), 2000.0)
    assert (np.diff(times) >= 0).all()
    assert times[-1] < 2000.0
    assert len(times) == pytest.approx(2000.0 * rate, abs=6.0 * np.sqrt(2000.0 * rate * bursts))


@pytest.mark.parametrize(
    ("dispersion", "ten"),
    [((1.0, 1.0, 1.0), 1.0), ((1.4, 3.9, 16.0), 3.9), ((1.0, 16.0, 16.0), 16.0), ((6.0, 6.0, 6.0), 6.0)],
)
def test_counts_of_ten_seconds_disperse_as_asked(dispersion: tuple[float, float, float], ten: float) -> None:
    times = draw_arrivals(40.0, np.array(dispersion), np.random.default_rng(5), 100_000.0)
    counts = np.histogram(times, 10_000, (0.0, 100_000.0))[0]
    assert counts.var() / counts.mean() == pytest.approx(ten, rel=0.1)


def test_one_seed_gives_one_stream() -> None:
    one, other = (draw_arrivals(9.0, np.ones(3), np.random.default_rng(4), 100.0) for _ in range(2))
    assert one.tolist() == other.tolist()
