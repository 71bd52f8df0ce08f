"""Worked values of papers on partitioning and rooflines, where our forms can state them.

Pope et al., *Efficiently Scaling Transformer Inference* (MLSys 2023); Zhu et al., *MegaScale-Infer* (arXiv:2504.02263);
Agrawal et al., *Sarathi-Serve* (OSDI 2024). Figures are theirs unless a comment says how they follow.
"""

import numpy as np
import pytest

from planner.engine.attention import causal_pairs
from planner.engine.chip import chip
from planner.engine.collectives import all_reduce, exchange
from planner.engine.counts import operators
from planner.engine.layouts import Layouts
from planner.engine.parameters import parameters
from planner.engine.step import machine, prefill_attention
from planner.spec.catalog import Catalog
from planner.spec.efficiency import Collective
from planner.spec.engine import Parallelism
from planner.spec.model import Checkpoint

CATALOG = Catalog()
PALM = CATALOG.model("palm-540b")
PLAIN = Checkpoint(source="assumed")
ONE = Layouts.of([(1, 1, 1, 1)])
TPU_V4 = 275e12
LINK = 270e9
"""Interconnect of one TPU v4 [B/s]."""


def ideal(bandwidth: float) -> Collective:
    same = {"latency": "0 s", "bandwidth": f"{bandwidth} B/s"}
    ring = {"source": "assumed", "basis": "assumed", "band": 0.3, "ring": {2: same, 64: same}}
    return Collective.model_validate(ring)


def flops_of_a_token() -> float:
    linear, routed, head = operators(PALM, "bf16", PLAIN, ONE)
    assert not routed
    return float(sum(op.layers * op.flops[0] for op in (*linear, head)))


@pytest.mark.parametrize("chips", [16, 64])
def test_weight_stationary_in_one_dimension_does_not_shrink_with_chips(chips: int) -> None:
    """Section 3.2.1: 2 B L E / W; 139.8 us for 512 tokens of width 18,432 in 16 bits. Ours keeps (K - 1) / K."""
    message = np.array([[512 * PALM.hidden * 2.0]])
    group = np.array([[chips]])
    part = (chips - 1) / chips
    assert all_reduce(message, group, ideal(LINK))[0, 0] == pytest.approx(139.8e-6 * part, rel=1e-3)
    # Appendix A.1: an all-gather or a reduce-scatter is half of it.
    assert exchange(message, group, ideal(LINK))[0, 0] == pytest.approx(139.8e-6 / 2 * part, rel=1e-3)


@pytest.mark.parametrize(
    ("tokens", "seconds", "mfu"),
    [(512 * 2048, 85.2, 0.76), (64 * 64, 1.82, 0.14), (2048, 0.29, 0.43), (512 * 64, 6.0, 0.33)],
)
def test_utilisation_of_palm_on_64_chips(tokens: int, seconds: float, mfu: float) -> None:
    """Table 2: 2 N FLOPs a token over what 64 chips could do in the time; two digits are printed."""
    assert flops_of_a_token() * tokens / (64 * TPU_V4 * seconds) == pytest.approx(mfu, abs=0.012)


def test_flops_of_a_token_are_twice_the_parameters() -> None:
    assert flops_of_a_token() == pytest.approx(2 * 540e9, rel=5e-3)
    assert flops_of_a_token() == pytest.approx(2 * parameters(PALM).active, rel=1e-3)


@pytest.mark.parametrize(("peak", "bandwidth", "tokens"), [(312e12, 2e12, 156), (989e12, 3.35e12, 295)])
def test_tokens_at_which_arithmetic_binds(peak: float, bandwidth: float, tokens: int) -> None:
    """MegaScale-Infer, section 2.3: b >= F / B, 156 on A100; on H100 it follows from the data sheet."""
    for op in operators(CATALOG.model("llama-3.1-70b"), "bf16", PLAIN, ONE)[0]:
        knee = (op.weight[0] / bandwidth) / (op.flops[0] / peak)
        assert knee == pytest.approx(tokens, rel=2e-3)


def test_chunks_read_the_cache_again() -> None:
    """Sarathi-Serve: 8,192 tokens in chunks of 512 read 61,440 tokens more: 20.1 GB of Llama 2 70B in 16 bits."""
    card = CATALOG.model("llama-2-70b")
    driven = chip(CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm"))
    m = machine(card, "bf16", PLAIN, Layouts.of([(8, 1, 1, 1)]), driven, Parallelism(source="assumed"))
    chunked, whole = (
        prefill_attention(m, np.zeros(1), np.array([8192.0]), np.array([[chunk]])).byte_time[0, 0]
        for chunk in (512.0, 8192.0)
    )
    rate = driven.prefill_attention.memory * driven.bandwidth
    assert 8 * (chunked - whole) * rate == pytest.approx(61_440 * 327_680)
    assert pytest.approx(20.1e9, rel=2e-3) == 61_440 * 327_680
    # 0.75 ms on eight H100 at their full bandwidth: little, as the paper says.
    assert (chunked - whole) * driven.prefill_attention.memory == pytest.approx(0.75e-3, rel=2e-3)


def test_prefill_attention_of_a_prompt_is_half_a_square() -> None:
    """Causal attention does half of the n^2 pairs (e.g. FlashAttention-2, arXiv:2307.08691, section 3.1)."""
    assert causal_pairs(np.zeros(1), np.array([2048.0]), np.inf)[0] == 2048**2 / 2
