"""One exact configuration: the same figures as accuracy, parts that add up, and clear refusals."""

import pytest

from planner.check.expression import express
from planner.check.kinds import predict
from planner.check.single import Settings, single
from planner.errors import InputError, NoPlanError
from planner.spec.bands import Bands
from planner.spec.card import read_document
from planner.spec.catalog import Catalog, shipped
from planner.spec.observation import Observation

CATALOG = Catalog()
BANDS = read_document(shipped() / "hardware" / "measurements" / "bands.yaml", Bands)
BASE: dict[str, object] = {
    "engine": "vllm",
    "engine_version": "0.19",
    "model": "qwen3-235b-a22b",
    "weights_dtype": "fp8",
    "hardware": "h200-sxm",
    "tp": 4,
    "ep": 4,
    "accelerators": 4,
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 32,
    "kind": "fixed_concurrency",
    "metric": "tpot_mean",
    "value": 1.0,
    "unit": "s",
}


def row(**change: object) -> Observation:
    return Observation.model_validate(BASE | change)


def test_it_says_what_accuracy_would() -> None:
    """Without a version or a format of the cache: of the newest version, with 16 bits."""
    answer = single(row(), CATALOG, BANDS, "test")
    newest = CATALOG.engine("vllm").versions[-1].since
    for metric, said in (("tpot_mean", answer.tpot), ("ttft_mean", answer.ttft)):
        (value,) = predict([express(row(metric=metric, engine_version=newest, kv_dtype="bf16"), CATALOG)])
        assert said is not None
        assert said.value == pytest.approx(float(value))


@pytest.mark.parametrize("change", [{}, {"kind": "open_loop", "request_rate": 1.0}, {"kind": "decode"}])
def test_bands_hold_their_figure_and_parts_add_up(change: dict[str, object]) -> None:
    answer = single(row(**change), CATALOG, BANDS, "test")
    for said in (answer.prefill, answer.ttft, answer.tpot, answer.output_tokens_per_s):
        assert said is None or said.band[0] <= said.value <= said.band[1]
    assert (answer.ttft is None) == ("decode" in change.values())
    for done in (answer.decode_step, answer.prefill_step):
        assert done.seconds == pytest.approx(sum(item.total for item in done.operators))
    held = answer.memory
    kept = held.weights + held.kv + held.activations + held.reserve + held.adapters
    assert kept == pytest.approx(held.capacity, rel=1e-6)
    # A step at the batch is at most the time per token, which prompts of others lengthen.
    assert answer.decode_step.seconds <= answer.tpot.value * 1.1


def test_settings_of_the_engine_count() -> None:
    few = single(row(concurrency=256), CATALOG, BANDS, "test", Settings(max_batch=16))
    many = single(row(concurrency=256), CATALOG, BANDS, "test")
    assert few.max_batch == 16
    assert few.tpot.value < many.tpot.value
    assert few.output_tokens_per_s.value < many.output_tokens_per_s.value


def test_what_does_not_load_says_why() -> None:
    with pytest.raises(NoPlanError, match="memory"):
        single(row(tp=1, ep=1, accelerators=1), CATALOG, BANDS, "test")
    with pytest.raises(InputError, match="speculative"):
        single(row(speculative="eagle"), CATALOG, BANDS, "test")
