"""Tables of step times against the functions that they are of: at most 1 % away, off the grid too."""

import numpy as np
import pytest

from planner.check.expression import express, subject
from planner.check.queues import across, along
from planner.check.single import replicas
from planner.check.steptimes import ranks, rules, times
from planner.engine.step import body, decode_attention, head, prefill_attention, total
from planner.replica.candidates import Replicas
from planner.spec.catalog import Catalog
from planner.spec.observation import Observation

CATALOG = Catalog()
CASES = [
    ("vllm", "h100-sxm", "llama-3.1-8b", "bf16", (1, 1, 1, 1)),
    ("vllm", "h100-sxm", "llama-3.1-70b", "fp8", (2, 2, 1, 1)),
    ("sglang", "h200-sxm", "deepseek-r1", "fp8", (8, 1, 1, 8)),
    ("sglang", "b200-sxm", "qwen3.5-397b-a17b", "nvfp4", (4, 1, 1, 1)),
    ("tensorrt-llm", "b200-sxm", "gpt-oss-120b", "mxfp4", (1, 1, 2, 2)),
]


def served(engine: str, hardware: str, model: str, weights: str, layout: tuple[int, int, int, int]) -> Replicas:
    tp, pp, dp, ep = layout
    row = Observation.model_validate(
        {"engine": engine, "model": model, "hardware": hardware, "weights_dtype": weights, "kv_dtype": "bf16"}
        | {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "dp_kind": "attention" if dp > 1 else None}
        | {"accelerators": tp * pp * dp, "input_tokens": 1000, "output_tokens": 200, "concurrency": 16}
        | {"kind": "fixed_concurrency", "metric": "tpot_mean", "value": 1.0, "unit": "s"}
    )
    one = express(row, CATALOG)
    return replicas(subject(one.configuration, one.load), one.configuration.layout)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[2]}")
def test_tables_are_within_one_per_cent(case: tuple[str, str, str, str, tuple[int, int, int, int]]) -> None:
    of = served(*case)
    m, t = of.machine, times(of, 0)
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(300):
        batch = float(np.round(np.exp(rng.uniform(0.0, np.log(512.0)))))
        context = float(np.exp(rng.uniform(np.log(16.0), np.log(60_000.0))))
        start, chunk = float(np.round(np.exp(rng.uniform(0.0, np.log(60_000.0))))), float(rng.integers(1, 8192))
        tokens = batch + chunk
        exact = float(total(body(m, np.full((1, 1), tokens)))[0, 0]) + float(
            head(m, np.full((1, 1), batch)).total[0, 0]
        )
        exact += float(decode_attention(m, np.full((1, 1), batch), (np.array([context]), np.ones(1))).total[0, 0])
        exact += float(prefill_attention(m, np.full(1, start), np.full(1, chunk), np.full(1, chunk)).total[0, 0])
        read = along(tokens, t.tokens, t.linear) + along(batch, t.rows, t.head)
        read += across(batch, context, t.batches, t.contexts, t.decode) + across(
            start, chunk, t.starts, t.chunks, t.prefill
        )
        worst = max(worst, abs(read / exact - 1.0))
    assert worst < 0.01


def test_rules_come_from_the_engine_and_the_memory() -> None:
    of = served(*CASES[1])
    r = rules(of, 0, 0)
    assert (r.stages, ranks(of, 0), r.mixed, r.reserve) == (2, 1, True, False)
    assert r.budget == of.subject.engine.scheduling.token_budget
    assert r.limit == of.subject.engine.scheduling.max_batch // 2
    # The cache of one sequence of the mean context fits as often as the plan says, apart from its reserve for spread.
    mean = float(of.subject.traffic.contexts().value @ of.subject.traffic.contexts().share)
    assert r.room / (mean + r.each) == pytest.approx(float(of.fits[0]), rel=0.05)


def test_a_rank_of_several_is_one() -> None:
    assert ranks(served(*CASES[4]), 0) == 2
