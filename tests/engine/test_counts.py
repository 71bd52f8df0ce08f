"""The operators are the model: weights add up to its parameters, FLOPs to twice those that a token meets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.attention import causal_pairs, cost
from planner.engine.cache import kv_bytes_per_token, state_bytes
from planner.engine.counts import Linear, Routed, distinct_experts, operators, stage_share, weight_bytes
from planner.engine.layouts import Layouts
from planner.engine.parameters import parameters
from planner.spec.catalog import Catalog
from planner.spec.model import Checkpoint, ModelCard, NumberFormat

CATALOG = Catalog()
CARDS = [CATALOG.model(name) for name in CATALOG.names("model")]
PLAIN = Checkpoint(source="assumed")
"""All linear layers quantised, without blocks."""
DEGREES = np.array([1, 2, 4, 8])
DRAWS = 400


def by_name(card: ModelCard) -> str:
    return card.name


def tensor_parallel(*degrees: int) -> Layouts:
    return Layouts.of([(tp, 1, 1, 1) for tp in degrees])


def weights(linear: tuple[Linear, ...], routed: tuple[Routed, ...], head: Linear) -> np.ndarray:
    """Weights of one accelerator without the embedding [B]."""
    dense = sum(op.layers * op.weight for op in (*linear, head))
    return np.asarray(dense + sum(op.layers * op.local * op.weight for op in routed))


@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_weights_in_16_bits_are_the_parameters(card: ModelCard) -> None:
    count = parameters(card)
    held = weights(*operators(card, "bf16", PLAIN, tensor_parallel(1)))[0]
    assert held / 2.0 == pytest.approx(count.total - count.positions - (count.embedding if count.head else 0), rel=2e-3)
    assert weight_bytes(card, "bf16", PLAIN, tensor_parallel(1))[0] / 2.0 == pytest.approx(count.total, rel=2e-3)


@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_flops_of_a_token_are_twice_the_parameters_that_it_meets(card: ModelCard) -> None:
    linear, routed, head = operators(card, "bf16", PLAIN, tensor_parallel(1))
    flops = sum(op.layers * op.flops[0] for op in (*linear, head))
    flops += sum(op.layers * op.top_k * op.row_flops[0] for op in routed)
    assert flops == pytest.approx(2.0 * parameters(card).active, rel=3e-3)


@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_shards_add_up_to_the_whole_but_for_what_is_held_more_than_once(card: ModelCard) -> None:
    linear, routed, head = operators(card, "bf16", PLAIN, tensor_parallel(1, 2))
    copied = {"router", "latent down-projection", "index query"}
    for op in (*linear, head):
        whole, shard = op.weight
        if op.name in copied:
            assert shard == whole
        elif op.name == "qkv projection":
            assert whole <= 2 * shard <= 2 * whole
        else:
            assert 2 * shard == pytest.approx(whole)
        np.testing.assert_allclose(op.flops, op.weight)  # two FLOPs and two bytes for each weight
    for each in routed:
        assert 2 * each.weight[1] == pytest.approx(each.weight[0])


def test_key_and_value_heads_are_copied_where_tp_exceeds_them() -> None:
    card = CATALOG.model("llama-3.1-70b")
    linear, _, _ = operators(card, "bf16", PLAIN, tensor_parallel(8, 16))
    qkv = next(op for op in linear if op.name == "qkv projection")
    # 64 query heads and 8 + 8 key and value heads of 128; 16 ways: 4 query heads and one of each.
    assert (qkv.weight / 2.0 / 8192 / 128).tolist() == [8 + 2, 4 + 2]


@pytest.mark.parametrize("card", CARDS, ids=by_name)
@pytest.mark.parametrize("ways", [2, 4])
def test_experts_may_be_cut_or_spread(card: ModelCard, ways: int) -> None:
    layouts = Layouts.of([(1, 1, 1, 1), (ways, 1, 1, 1), (ways, 1, 1, ways), (1, 1, ways, ways)])
    for op in operators(card, "bf16", PLAIN, layouts)[1]:
        np.testing.assert_allclose(op.local * op.weight * [1, ways, ways, ways], op.experts * op.weight[0])


def test_what_a_checkpoint_leaves_in_16_bits_is_wide() -> None:
    card = CATALOG.model("gpt-oss-120b")
    assert card.checkpoints["mxfp4"].covers == "experts"
    linear, routed, head = operators(card, "mxfp4", card.checkpoints["mxfp4"], tensor_parallel(1))
    assert all(op.wide for op in (*linear, head))
    np.testing.assert_allclose([op.flops / op.weight for op in linear], 1.0)
    assert routed[0].weight[0] == 3 * 2880 * 2880 * 4.25 / 8


def test_quantising_everything_leaves_the_router_and_the_head_wide() -> None:
    card = CATALOG.model("deepseek-v3")
    linear, routed, head = operators(card, "fp8", card.checkpoints["fp8"], tensor_parallel(1))
    assert {op.name for op in (*linear, head) if op.wide} == {"router", "output head"}
    assert routed[0].weight[0] == 3 * 7168 * 2048
    # Weights of the checkpoint: 671 B at a byte, and embedding, head and routers at two.
    assert weight_bytes(card, "fp8", card.checkpoints["fp8"], tensor_parallel(1))[0] == pytest.approx(673e9, rel=2e-3)


@pytest.mark.parametrize("weights_format", ["bf16", "fp8", "int4"])
@given(tp=st.sampled_from([1, 2, 4, 8]), pp=st.sampled_from([1, 2, 4, 8]), card=st.sampled_from(CARDS))
def test_a_replica_holds_the_model_at_least_once(
    weights_format: NumberFormat, tp: int, pp: int, card: ModelCard
) -> None:
    if pp > card.depth:
        pp = 1
    one = weight_bytes(card, weights_format, PLAIN, tensor_parallel(1))[0]
    each = weight_bytes(card, weights_format, PLAIN, Layouts.of([(tp, pp, 1, 1)]))[0]
    assert each * tp * pp >= one * (1 - 1e-12)
    assert each <= one


@pytest.mark.parametrize(
    ("name", "pp", "layers"), [("deepseek-v3", 2, 31), ("qwen3-8b", 8, 5), ("llama-3.1-70b", 4, 20)]
)
def test_a_stage_holds_whole_layers(name: str, pp: int, layers: int) -> None:
    card = CATALOG.model(name)
    share = stage_share(card, Layouts.of([(1, pp, 1, 1)]))[0]
    assert share * card.depth == pytest.approx(layers)
    whole, part = weight_bytes(card, "bf16", PLAIN, Layouts.of([(1, 1, 1, 1), (1, pp, 1, 1)]))
    table = 2.0 * card.vocabulary * card.hidden
    assert part == pytest.approx((whole - (1 if card.tied_embeddings else 2) * table) * share + table)


@pytest.mark.parametrize(("experts", "top_k", "tokens"), [(8, 2, 3), (64, 6, 20), (128, 8, 1), (256, 8, 90), (4, 4, 2)])
def test_distinct_experts_as_drawn(experts: int, top_k: int, tokens: int) -> None:
    rng = np.random.default_rng(3)
    draws = rng.random((DRAWS, tokens, experts)).argpartition(top_k - 1, axis=2)[..., :top_k].reshape(DRAWS, -1)
    seen = np.zeros((DRAWS, experts), bool)
    np.put_along_axis(seen, draws, values=True, axis=1)
    number = seen.sum(axis=1)
    error = 4.0 * number.std() / np.sqrt(DRAWS) + 1e-9
    assert distinct_experts(float(experts), float(top_k), np.array([float(tokens)]))[0] == pytest.approx(
        number.mean(), abs=error
    )


@pytest.mark.parametrize("kv", ["bf16", "fp8"])
@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_cache_read_in_a_step_is_the_cache_that_is_held(card: ModelCard, kv: str) -> None:
    bits = {"bf16": 16, "fp8": 8}[kv]
    for group in card.layers:
        attention = group.attention
        heads = attention.value_heads if attention.kind == "linear" else attention.heads
        tp = DEGREES[heads % DEGREES == 0]
        of = cost(group.attention, tp, kv)
        np.testing.assert_array_equal(of.token_bytes + of.index_bytes, kv_bytes_per_token(group.attention, bits, tp))
        np.testing.assert_array_equal(of.sequence_bytes, 2 * state_bytes(group.attention, tp))


def test_scoring_all_keys_counts_beside_reading_the_best() -> None:
    sparse, whole = (CATALOG.model(name).layers[-1].attention for name in ("deepseek-v3.2", "deepseek-v3"))
    of, other = (cost(attention, np.array([1, 8]), "bf16") for attention in (sparse, whole))
    assert (of.index_flops, other.index_flops) == (2 * 64 * 128, 0)
    np.testing.assert_array_equal(of.pair_flops, other.pair_flops)


@given(start=st.integers(0, 60), tokens=st.integers(1, 60), window=st.integers(1, 200))
def test_pairs_are_the_sum_over_queries(start: int, tokens: int, window: int) -> None:
    """The integral lies half a pair below the sum for each query that is not yet capped."""
    exact = sum(min(place, window) for place in range(start + 1, start + tokens + 1))
    got = causal_pairs(np.array([float(start)]), np.array([float(tokens)]), float(window))[0]
    capped = max(0, start + tokens - max(start, window))
    assert exact - got == pytest.approx((tokens - min(capped, tokens)) / 2.0, abs=0.5)


def test_pairs_without_a_window_grow_with_the_square() -> None:
    start, tokens = np.array([0.0, 10.0]), np.array([100.0, 5.0])
    np.testing.assert_allclose(causal_pairs(start, tokens, np.inf), [5000.0, (15.0**2 - 10.0**2) / 2])
    assert causal_pairs(start, tokens, 0.0).tolist() == [0.0, 0.0]
