"""Laying workloads over each other loses no tokens, and running sequences are seen as often as they run."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.spec.scenario import WorkloadSpec
from planner.workload.blend import CONTEXTS, Blend, blend, busy_hours
from planner.workload.stats import Workload, merge, summarise

PROMISE = {"ttft": "1 s", "tpot": "50 ms"}


def workload(
    name: str, rate: float, mean: tuple[float, float], hit_rate: float = 0.0, profile: Sequence[float] | None = None
) -> Workload:
    """Lognormal input and output with given means."""
    lengths = {kind: {"mean": each, "p50": each / 1.4} for kind, each in zip(("input", "output"), mean, strict=True)}
    traffic = {"rate": f"{rate} req/s"} | ({} if profile is None else {"profile": list(profile)})
    text = {"name": name, "model": "m", "lengths": lengths, "traffic": traffic, "promise": PROMISE}
    return summarise(WorkloadSpec.model_validate(text | {"sharing": {"hit_rate": hit_rate}}))


SHORT, LONG = workload("short", 6.0, (400.0, 60.0)), workload("long", 2.0, (3000.0, 500.0), 0.4)

rates = st.floats(0.1, 50.0)
lengths = st.tuples(st.floats(20.0, 20_000.0), st.floats(10.0, 2000.0))
mixtures = st.lists(st.tuples(rates, lengths, st.floats(0.0, 0.9)), min_size=1, max_size=4)


@settings(max_examples=40)
@given(mixtures)
def test_tokens_are_neither_lost_nor_made(several: list[tuple[float, tuple[float, float], float]]) -> None:
    works = [workload(f"w{place}", *each) for place, each in enumerate(several)]
    of, whole = blend(works), merge(works)
    weight = np.array([rate for rate, _, _ in several])
    assert of.peak_rate == pytest.approx(weight.sum())
    np.testing.assert_allclose(of.weight, weight / weight.sum())
    for bins in (of.input, of.output):
        assert bins.share.sum() == pytest.approx(1.0)
    assert of.input.mean == pytest.approx(of.weight @ [work.input.mean for work in works])
    assert of.output.mean == pytest.approx(of.weight @ [work.output.mean for work in works])
    assert of.input.share @ of.cached == pytest.approx(whole.hit_rate * whole.input.mean)
    assert (of.input.mean, of.output.mean, of.peak_rate) == pytest.approx(
        (whole.input.mean, whole.output.mean, whole.peak_rate)
    )
    assert of.steps == pytest.approx(of.output.mean - 1.0)
    for place, work in enumerate(works):
        np.testing.assert_array_equal(of.input.value[of.inputs[place]], work.input.value)
        np.testing.assert_allclose(of.output.share[of.outputs[place]].sum(), of.weight[place])


@settings(max_examples=40)
@given(mixtures)
def test_contexts_keep_their_mean(several: list[tuple[float, tuple[float, float], float]]) -> None:
    """A request is seen for each of its steps: E[(in + out / 2) (out - 1)] / E[out - 1]."""
    works = [workload(f"w{place}", *each) for place, each in enumerate(several)]
    of = blend(works)
    seen = of.contexts()
    steps = moment = 0.0
    for weight, work in zip(of.weight, works, strict=True):
        out, share = work.output.value, weight * work.output.share
        steps += share @ (out - 1.0)
        moment += share @ ((out - 1.0) * (work.input.mean + out / 2.0))
    assert seen.share.sum() == pytest.approx(1.0)
    assert seen.mean == pytest.approx(moment / steps, rel=1e-6)
    assert len(seen.value) <= CONTEXTS
    assert (np.diff(seen.value) >= 0.0).all()
    assert seen.maximum <= of.longest


def seen_at_random(of: Blend, seed: int) -> np.ndarray:
    """Contexts of the steps of many requests, one drawn step for each."""
    rng = np.random.default_rng(seed)
    found, odds = [], []
    for weight, work in zip(of.weight, of.workloads, strict=True):
        into = rng.choice(work.input.value, 40_000, p=work.input.share)
        out = rng.choice(work.output.value, 40_000, p=work.output.share)
        found.append(into + out * rng.random(40_000))
        odds.append(weight * (out - 1.0))
    context, odd = np.concatenate(found), np.concatenate(odds)
    return np.asarray(rng.choice(context, 60_000, p=odd / odd.sum()))


@pytest.mark.parametrize("works", [[SHORT], [LONG], [SHORT, LONG]], ids=len)
def test_contexts_as_drawn(works: list[Workload]) -> None:
    of = blend(works)
    bins, drawn = of.contexts(), seen_at_random(of, 4)
    error = 4.0 * drawn.std() / np.sqrt(len(drawn))
    assert bins.mean == pytest.approx(drawn.mean(), abs=error)
    # Bins are means of slices, so their spread is a little less.
    spread = np.sqrt(bins.second - bins.mean**2)
    assert 0.9 * drawn.std() < spread < 1.01 * drawn.std()
    for window in np.quantile(drawn, [0.2, 0.5, 0.8]):
        capped = float(bins.share @ np.minimum(bins.value, window))
        assert capped == pytest.approx(np.minimum(drawn, window).mean(), rel=0.03)


def test_the_busiest_hour_is_that_of_the_sum() -> None:
    night = workload("night", 4.0, (100.0, 20.0), profile=[3.0] * 8 + [0.0] * 16)
    day = workload("day", 4.0, (900.0, 90.0), profile=[0.0] * 8 + [1.0] * 15 + [2.0])
    flat = workload("flat", 1.0, (500.0, 50.0))
    of = blend([night, day, flat])
    hours = busy_hours([night, day, flat])
    assert of.peak_rate == pytest.approx(hours.sum(axis=0).max())
    assert of.peak_rate == pytest.approx(max(12.0, 24 * 4 * 2 / 17) + 1.0)
    assert of.weight.tolist() == pytest.approx([12.0 / 13.0, 0.0, 1.0 / 13.0])
    assert np.isfinite(of.contexts().value).all()


def test_order_does_not_matter() -> None:
    one, other = blend([SHORT, LONG]), blend([LONG, SHORT])
    assert one.contexts().mean == pytest.approx(other.contexts().mean)
    assert one.longest == other.longest
    np.testing.assert_allclose(one.dispersion, other.dispersion)
