"""Predictions of measurements: laws that each kind keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.check.expression import Expressed, InexpressibleError, express
from planner.check.kinds import predict
from planner.spec.catalog import Catalog
from planner.spec.observation import Observation

CATALOG = Catalog()
BASE: dict[str, object] = {
    "engine": "vllm",
    "engine_version": "0.19",
    "model": "llama-3.1-8b",
    "hardware": "h100-sxm",
    "tp": 1,
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 8,
    "kind": "fixed_concurrency",
    "metric": "tpot_mean",
    "value": 0.01,
    "unit": "s",
}


def row(**change: object) -> Expressed:
    return express(Observation.model_validate(BASE | change), CATALOG)


def value(**change: object) -> float:
    return float(predict([row(**change)])[0])


@given(st.integers(1, 400), st.integers(1, 400))
def test_more_in_flight_is_never_faster_for_one_and_never_less_for_all(one: int, other: int) -> None:
    few, many = sorted((one, other))
    for metric in ("tpot_mean", "e2e_latency"):
        assert value(metric=metric, concurrency=few) <= value(metric=metric, concurrency=many) * (1 + 1e-6)
    tokens = {"metric": "output_tokens_per_s", "unit": "token/s"}
    assert value(**tokens, concurrency=few) <= value(**tokens, concurrency=many) * 1.02


@given(st.integers(1, 300), st.integers(2, 2000))
def test_a_loop_keeps_littles_law(circulating: int, output: int) -> None:
    change = {"concurrency": circulating, "output_tokens": output}
    tokens = value(**change, metric="output_tokens_per_s", unit="token/s")
    whole = value(**change, metric="ttft_mean") + (output - 1) * value(**change, metric="tpot_mean")
    most = value(**change, kind="saturated", metric="output_tokens_per_s", unit="token/s")
    assert tokens <= most * (1 + 1e-9)
    held = tokens * whole / output
    assert held == pytest.approx(circulating, rel=1e-6) or (held < circulating and tokens == pytest.approx(most))


def test_the_first_burst_counts_less_in_a_longer_run() -> None:
    runs = [value(metric="ttft_mean", concurrency=64, num_prompts=f"{rounds} x concurrency") for rounds in (2, 5, 50)]
    assert runs == sorted(runs, reverse=True)


def test_one_request_alone_waits_for_no_other() -> None:
    alone = value(metric="ttft_mean", concurrency=1)
    batch = value(kind="prefill", metric="prefill_time", concurrency=1)
    handling = CATALOG.efficiency("h100-sxm", "vllm").overhead.per_prefill
    assert alone == pytest.approx(batch + handling, rel=0.15)


def test_saturation_bounds_every_loop() -> None:
    most = value(kind="saturated", metric="output_tokens_per_s", unit="token/s")
    for circulating in (1, 16, 256, 4096):
        held = value(metric="output_tokens_per_s", unit="token/s", concurrency=circulating)
        assert held <= most * 1.02


def test_a_static_batch_is_its_prefill_and_its_steps() -> None:
    change = {"kind": "decode", "concurrency": 4}
    first = value(kind="prefill", metric="prefill_time", concurrency=4)
    step = value(**change, metric="decode_step_time")
    assert value(**change, metric="e2e_latency") == pytest.approx(first + 199 * step)


def test_replicas_share_the_load_and_add_up() -> None:
    one = value(kind="saturated", metric="output_tokens_per_s", unit="token/s")
    four = {"accelerators": 4, "dp": 4, "dp_kind": "replicas", "kind": "saturated", "unit": "token/s"}
    assert value(**four, metric="output_tokens_per_s") == pytest.approx(4 * one)
    assert value(**four, metric="output_tokens_per_s_per_accelerator") == pytest.approx(one)


def test_a_server_within_limits_sells_at_most_its_saturation() -> None:
    most = value(kind="saturated", metric="output_tokens_per_s", unit="token/s")
    held = value(kind="server_at_slo", metric="output_tokens_per_s", unit="token/s", request_rate=1.0)
    assert 0.3 * most < held <= most


def test_arrivals_at_a_rate_get_slower_with_the_rate() -> None:
    for metric in ("ttft_mean", "ttft_p99", "tpot_mean", "tpot_p99"):
        times = [value(kind="open_loop", metric=metric, request_rate=rate) for rate in (1.0, 8.0, 20.0)]
        assert times == sorted(times)


def test_rows_together_equal_rows_alone() -> None:
    rows = [row(concurrency=count, metric=metric) for count in (1, 9, 70) for metric in ("tpot_mean", "ttft_mean")]
    np.testing.assert_allclose(predict(rows), [predict([one])[0] for one in rows], rtol=1e-12)


def test_what_does_not_fit_has_no_prediction() -> None:
    assert np.isnan(value(model="llama-3.1-405b"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tp": None}, "layout"),
        ({"metric": "prefill_time"}, "prefill_time is not predicted for fixed_concurrency"),
        ({"kind": "open_loop", "metric": "e2e_latency", "request_rate": 1.0}, "e2e_latency"),
        ({"kind": "saturated"}, "tpot_mean"),
        ({"speculative": "eagle, 3 tokens"}, "speculative"),
        ({"model": "gpt-7"}, "gpt-7"),
        ({"hardware": "abacus"}, "abacus"),
        ({"engine": "llama.cpp"}, "llama.cpp"),
        ({"length_jitter": "gaussian"}, "gaussian"),
    ],
)
def test_what_cannot_be_expressed_says_why(change: dict[str, object], reason: str) -> None:
    with pytest.raises(InexpressibleError, match=reason):
        row(**change)


def test_data_parallel_attention_is_read_from_what_the_row_states() -> None:
    rank = row(model="deepseek-r1", tp=1, dp=8, ep=8, dp_kind="attention", hardware="h200-sxm")
    whole = row(model="deepseek-r1", tp=8, dp=8, ep=8, dp_kind="attention", hardware="h200-sxm", accelerators=8)
    assert rank.configuration.layout == whole.configuration.layout == (1, 1, 8, 8)
    assert rank.load.circulating == 8 * whole.load.circulating


def test_four_bit_floats_are_the_checkpoints_or_the_makers() -> None:
    named = {"weights_dtype": "fp4"}
    assert row(**named, model="gpt-oss-120b").configuration.weights == "mxfp4"
    assert row(**named, hardware="b200-sxm").configuration.weights == "nvfp4"
    assert row(**named, hardware="mi355x").configuration.weights == "mxfp4"
