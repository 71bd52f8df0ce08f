"""Published and worked values of experts, caches and adapters.

Zhu et al., *MegaScale-Infer* (arXiv:2504.02263, section 2.3); Pope et al. (MLSys 2023, table 1); Patel et al.,
*Splitwise* (ISCA 2024); Qin et al., *Mooncake* (FAST 2025); Sheng et al., *S-LoRA* (arXiv:2311.03285).
"""

import numpy as np
import pytest

from planner.engine.attention import cost
from planner.engine.cache import kv_bytes_per_token, token_bytes
from planner.engine.counts import distinct_experts, operators
from planner.engine.layouts import Layouts
from planner.engine.memory import adapter_bytes, adapter_parameters
from planner.spec.catalog import Catalog
from planner.spec.model import Checkpoint, GroupedAttention

CATALOG = Catalog()
PLAIN = Checkpoint(source="assumed")
ONE = Layouts.of([(1, 1, 1, 1)])
A100 = 312e12 / 2e12
"""FLOPs for each byte, as the paper rounds them."""


def test_experts_of_mixtral_are_a_quarter_used_at_156_tokens() -> None:
    """MegaScale-Infer: 156 tokens fill a dense layer on A100, but leave 39 for each of eight experts, top 2."""
    (routed,) = operators(CATALOG.model("mixtral-8x22b"), "bf16", PLAIN, ONE)[1]
    each = 156 * routed.top_k / routed.experts
    assert each == 39.0
    arithmetic, reading = each * routed.row_flops[0] / 312e12, routed.weight[0] / 2e12
    assert arithmetic / reading == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize(("experts", "top_k", "tokens"), [(8, 2, 624), (16, 4, 624), (32, 4, 1248)])
def test_tokens_that_fill_experts(experts: int, top_k: int, tokens: int) -> None:
    """The paper's form min(K / E * b / 156, 1): Mixtral, DBRX and the scaled mixture reach 1 at these batches."""
    assert top_k / experts * tokens == pytest.approx(A100)
    # By then every expert is visited, as that form takes for granted.
    assert distinct_experts(float(experts), float(top_k), np.array([float(tokens)]))[0] == pytest.approx(experts)


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("llama-2-70b", 327_680),  # Splitwise, Mooncake: 320 KiB
        ("llama-3.1-70b", 327_680),
        ("palm-540b", 120_832),  # one head of 256 in 118 layers
        ("deepseek-v3", 70_272),  # DeepSeek-V3 hardware paper (arXiv:2505.09343), table 1: 70.272 KB
    ],
)
def test_cache_of_a_token(name: str, bytes_per_token: int) -> None:
    card = CATALOG.model(name)
    assert token_bytes(card, 16, 1, growing=False) == bytes_per_token
    stepped = sum(group.count * cost(group.attention, np.array([1]), "bf16").token_bytes[0] for group in card.layers)
    assert stepped == bytes_per_token


def test_moving_the_cache_of_a_prompt() -> None:
    """Splitwise: 1,500 tokens of Llama 2 70B are 491.5 MB: 9.83 ms at 400 Gbit/s, 19.7 ms at 200."""
    moved = 1500 * token_bytes(CATALOG.model("llama-2-70b"), 16, 1, growing=False)
    assert moved == pytest.approx(491.5e6, rel=1e-4)
    assert moved / 50e9 == pytest.approx(9.83e-3, rel=1e-3)
    assert moved / 25e9 == pytest.approx(19.7e-3, rel=3e-3)


@pytest.mark.parametrize(
    ("shape", "chips", "batch", "context"),
    [
        # Table 1 of Pope et al.: 30 % of 64 chips of 32 GiB; 118 layers.
        (GroupedAttention(kind="gqa", heads=64, kv_heads=64, head_dim=128), 64, 128, 1320),
        (GroupedAttention(kind="gqa", heads=64, kv_heads=64, head_dim=128), 64, 512, 330),
        # Multi-query sharded over heads: every chip holds the one head.
        (GroupedAttention(kind="gqa", heads=64, kv_heads=1, head_dim=256), 64, 128, 660),
        (GroupedAttention(kind="gqa", heads=64, kv_heads=1, head_dim=256), 64, 512, 165),
        # Sharded over the batch: one copy in all.
        (GroupedAttention(kind="gqa", heads=64, kv_heads=1, head_dim=256), 1, 128, 43_000),
        (GroupedAttention(kind="gqa", heads=64, kv_heads=1, head_dim=256), 1, 512, 10_700),
    ],
)
def test_longest_context_of_palm(shape: GroupedAttention, chips: int, batch: int, context: int) -> None:
    held = 118 * kv_bytes_per_token(shape, 16, chips) * chips
    room = 0.3 * 64 * 32 * 2**30
    assert room / (batch * held) == pytest.approx(context, rel=0.012)


@pytest.mark.parametrize(("targets", "size"), [("attention", 131.1e6), ("all", 414.2e6)])
def test_an_adapter_of_rank_16_on_70b(targets: str, size: float) -> None:
    """S-LoRA's form on the shape of Llama 2 70B: q, k, v and o, or all seven projections."""
    assert adapter_bytes(CATALOG.model("llama-2-70b"), 16, targets) == pytest.approx(size, rel=5e-4)


def test_an_adapter_of_a_square_matrix_costs_2_r_over_h() -> None:
    """S-LoRA: 2 r (h_in + h_out) against 2 h_in h_out FLOPs, 2 r / h where they are equal: the four of Llama 2 7B."""
    card = CATALOG.model("llama-2-7b")
    around = [op for op in operators(card, "bf16", PLAIN, ONE)[0] if op.name in {"qkv projection", "output projection"}]
    base = sum(op.layers * op.flops[0] for op in around)
    assert 2 * adapter_parameters(card, 64, "attention") / base == pytest.approx(2 * 64 / 4096)
