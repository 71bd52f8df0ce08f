"""A chip joins each kernel with the peak that its share refers to, and says what is assumed."""

import pytest

from planner.engine.chip import BITS, chip
from planner.spec.catalog import Catalog
from planner.spec.hardware import ComputeFormat
from planner.spec.model import KvFormat, NumberFormat

CATALOG = Catalog()
PAIRS = sorted(path.stem for path in CATALOG.file("hardware", "h100-sxm").parent.glob("efficiency/*.yaml"))
UNITS: dict[NumberFormat, ComputeFormat] = {"bf16": "bf16", "fp8": "fp8", "int8": "int8", "mxfp4": "fp4"}


@pytest.mark.parametrize("weights", BITS)
@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_of_cards_makes_a_chip_in_every_format(pair: str, weights: NumberFormat) -> None:
    hardware, engine = pair.split("--")
    card, efficiency = CATALOG.hardware(hardware), CATALOG.efficiency(hardware, engine)
    made = chip(card, efficiency, weights, "fp8", block=True)
    rates = card.peak.rates
    block = efficiency.formats[weights]
    if block.gemm is not None and block.peak is not None:
        named = efficiency.formats.get(f"{weights}_block", block)  # type: ignore[call-overload]
        assert made.peak == rates[named.peak]
    assert made.half_peak == rates["bf16"]
    assert {made.peak, made.attention_peak, made.experts_peak} <= set(rates.values())


def test_a_share_of_an_8_bit_peak_is_applied_to_it() -> None:
    """Attention over an FP8 cache is timed as a share of the FP8 peak, so that it is faster than over 16 bits."""
    card, efficiency = CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm")
    wide, narrow = (chip(card, efficiency, "bf16", kv) for kv in ("bf16", "fp8"))
    assert wide.attention_peak == card.peak.rates["bf16"]
    assert narrow.attention_peak == card.peak.rates["fp8"]
    reached = [one.attention_peak * one.prefill_attention.compute for one in (wide, narrow)]
    assert reached[0] < reached[1] < card.peak.rates["fp8"]


def test_a_kernel_that_falls_back_runs_on_16_bit_units() -> None:
    card, efficiency = CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm")
    lacking = efficiency.formats["fp8"].model_copy(update={"gemm": None})
    fallen = chip(card, efficiency.model_copy(update={"formats": {**efficiency.formats, "fp8": lacking}}), "fp8")
    assert fallen.peak == card.peak.rates["bf16"]
    assert fallen.experts_peak == card.peak.rates["fp8"]
    assert "gemm fp8 as bf16" in fallen.assumed


@pytest.mark.parametrize(("weights", "units"), UNITS.items())
def test_a_block_that_names_no_units_has_those_of_its_format(weights: NumberFormat, units: ComputeFormat) -> None:
    card, efficiency = CATALOG.hardware("b200-sxm"), CATALOG.efficiency("b200-sxm", "vllm")
    nameless = {name: block.model_copy(update={"peak": None}) for name, block in efficiency.formats.items()}
    made = chip(card, efficiency.model_copy(update={"formats": nameless}), weights)
    assert made.peak == card.peak.rates[units]


def test_a_missing_kernel_of_the_last_resort_is_an_error() -> None:
    card, efficiency = CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm")
    bare = efficiency.formats["bf16"].model_copy(update={"gemm": None})
    with pytest.raises(ValueError, match="no gemm for any of bf16"):
        chip(card, efficiency.model_copy(update={"formats": {**efficiency.formats, "bf16": bare}}))


@pytest.mark.parametrize("kv", ["bf16", "fp8"])
def test_what_is_measured_is_not_assumed(kv: KvFormat) -> None:
    card, efficiency = CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm")
    made = chip(card, efficiency, "bf16", kv)
    assert "gemm bf16" not in made.assumed
    assert {"overhead", "scale_out", "imbalance"} <= set(made.assumed)
    assert ("prefill_attention fp8" in made.assumed) == (kv == "fp8")


def test_a_cluster_may_have_other_links_than_the_card() -> None:
    card, efficiency = CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm")
    assert chip(card, efficiency).scale_out_link == card.scale_out.bandwidth
    assert chip(card, efficiency, scale_out=1e9).scale_out_link == 1e9
