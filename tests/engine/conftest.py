"""Chips that the step model is held against: as on the cards, at the speed of light, and k times as fast."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.engine.chip import Chip, chip
from planner.spec.catalog import Catalog
from planner.spec.efficiency import Collective, Collectives, Regime
from planner.spec.model import NumberFormat

NO_LIMIT = 1e30
"""A bandwidth that leaves no time to see [B/s]."""

Driven = Callable[..., Chip]


def _regimes(regimes: dict[int, Regime], latency: float, bandwidth: float) -> dict[int, Regime]:
    return {
        size: one.model_copy(update={"latency": one.latency * latency, "bandwidth": one.bandwidth * bandwidth})
        for size, one in regimes.items()
    }


def _collectives(of: Collectives, latency: float, bandwidth: float) -> Collectives:
    def change(one: Collective) -> Collective:
        regimes = {name: _regimes(getattr(one, name), latency, bandwidth) for name in ("one_shot", "ring")}
        return one.model_copy(update=regimes)

    kinds = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    return Collectives(**{kind: change(getattr(of, kind)) for kind in kinds})


@pytest.fixture(scope="session")
def driven() -> Driven:
    """The chip of a hardware card under vLLM, weights and cache in given formats."""
    catalog = Catalog()

    def make(hardware: str = "h100-sxm", weights: NumberFormat = "bf16", engine: str = "vllm") -> Chip:
        return chip(catalog.hardware(hardware), catalog.efficiency(hardware, engine), weights)

    return make


@pytest.fixture(scope="session")
def at_light_speed() -> Callable[[Chip], Chip]:
    """The same chip with every efficiency 1, no overhead and links without limit."""

    def make(of: Chip) -> Chip:
        whole = {"compute": 1.0, "memory": 1.0, "kernel": 0.0}
        collectives = _collectives(of.collectives, 0.0, NO_LIMIT)
        overhead = dict.fromkeys(("per_layer", "per_step", "per_sequence", "per_prefill"), 0.0)
        tiles = {"activation": 1.0, "per_expert": 0.0, "tile": 1}
        return replace(
            of,
            gemm=of.gemm.model_copy(update=whole),
            half=of.half.model_copy(update=whole),
            prefill_attention=of.prefill_attention.model_copy(update=whole | {"half_length": 0.0}),
            decode_attention=of.decode_attention.model_copy(update={"memory": 1.0, "kernel": 0.0, "spread": 0.0}),
            experts=of.experts.model_copy(update=whole | tiles),
            collectives=collectives,
            scale_out=of.scale_out.model_copy(update={"latency": 0.0, "bandwidth": 1.0}),
            scale_out_link=NO_LIMIT,
            overhead=of.overhead.model_copy(update=overhead),
            imbalance=of.imbalance.model_copy(update={"experts": 1.0}),
        )

    return make


@pytest.fixture(scope="session")
def times_as_fast() -> Callable[[Chip, float], Chip]:
    """The same chip with all rates times k and all fixed times over k."""

    def make(of: Chip, k: float) -> Chip:
        rates = ("peak", "attention_peak", "half_peak", "experts_peak", "bandwidth", "link", "scale_out_link")
        fits = {}
        for name in ("gemm", "half", "prefill_attention", "decode_attention", "experts", "scale_out", "overhead"):
            fit = getattr(of, name)
            fixed = {"kernel", "per_expert", "latency", "per_layer", "per_step", "per_sequence", "per_prefill"}
            update = {field: getattr(fit, field) / k for field in fixed & set(type(fit).model_fields)}
            fits[name] = fit.model_copy(update=update)
        collectives = _collectives(of.collectives, 1.0 / k, k)
        return replace(of, collectives=collectives, **{rate: getattr(of, rate) * k for rate in rates}, **fits)

    return make
