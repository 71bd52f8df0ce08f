"""Counts are exact, and the matrices are the parameters."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.matrices import Matrix, ffn_matrices, matrices
from planner.engine.parameters import attention_parameters, attention_vectors, ffn_parameters, parameters
from planner.spec.card import read_document
from planner.spec.model import (
    DenseFfn,
    GroupedAttention,
    Indexer,
    LatentAttention,
    LayerGroup,
    LinearAttention,
    ModelCard,
    MoeFfn,
)

MODELS = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parents[2])) / "models"


def model(name: str) -> ModelCard:
    return read_document(MODELS / f"{name}.yaml", ModelCard)


CARDS = [model(path.stem) for path in sorted(MODELS.glob("*.yaml"))]
GROUPS = [(card.hidden, group) for card in CARDS for group in card.layers]
GPT_OSS = GroupedAttention(
    kind="gqa", heads=64, kv_heads=8, head_dim=64, qkv_bias=True, output_bias=True, sinks=True, window=128
)
LATENT = LatentAttention(kind="mla", heads=128, query_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128)


@pytest.mark.parametrize(("hidden", "group"), GROUPS)
def test_matrices_and_vectors_are_the_parameters(hidden: int, group: LayerGroup) -> None:
    attention = sum(matrix.elements for matrix in matrices(group.attention, hidden))
    assert attention + attention_vectors(group.attention, hidden) == attention_parameters(group.attention, hidden)
    assert attention_vectors(group.attention, hidden) < 0.01 * attention
    ffn = sum(matrix.elements for matrix in ffn_matrices(group.ffn, hidden))
    assert 0 <= ffn_parameters(group.ffn, hidden).total - ffn < 0.01 * ffn


@pytest.mark.parametrize(("hidden", "group"), GROUPS)
def test_pieces_are_whole_and_a_token_can_pass(hidden: int, group: LayerGroup) -> None:
    for matrix in (*matrices(group.attention, hidden), *ffn_matrices(group.ffn, hidden)):
        cut = {"columns": matrix.columns, "rows": matrix.rows, "none": 1}[matrix.split]
        assert cut % matrix.units == 0
        assert matrix.sharded == (matrix.units > 1)
        assert hidden in {matrix.rows, matrix.columns} or matrix.name in {"query_up", "kv_up", "index_query"}


@given(units=st.integers(1, 300), size=st.integers(1, 64), tp=st.integers(1, 512))
def test_shares_cover_the_matrix_and_never_exceed_it(units: int, size: int, tp: int) -> None:
    matrix = Matrix("any", 7, units * size, "dense", "columns", units)
    assert matrix.elements <= tp * matrix.held(tp)
    assert matrix.held(tp) <= matrix.elements
    if units % tp == 0:
        assert tp * matrix.held(tp) == matrix.elements


def test_a_column_of_degrees_equals_a_loop() -> None:
    degrees = np.array([1, 2, 4, 8, 16, 32])
    for matrix in (*matrices(LATENT, 7168), *matrices(GPT_OSS, 2880)):
        np.testing.assert_array_equal(matrix.held(degrees), [matrix.held(int(tp)) for tp in degrees])


def test_latent_projections_down_are_held_whole() -> None:
    held = {matrix.name: matrix.held(8) / matrix.elements for matrix in matrices(LATENT, 7168)}
    assert held == {"query_down": 1, "query_up": 1 / 8, "kv_down": 1, "kv_up": 1 / 8, "output": 1 / 8}


def test_latent_attention_without_query_compression_projects_directly() -> None:
    sizes = LATENT.model_copy(update={"query_rank": None, "heads": 16})
    assert [matrix.name for matrix in matrices(sizes, 2048)] == ["query_up", "kv_down", "kv_up", "output"]
    assert matrices(sizes, 2048)[0].rows == 2048


def test_the_indexer_of_deepseek_v32_adds_14_million_per_layer() -> None:
    sparse = LATENT.model_copy(update={"indexer": Indexer(heads=64, head_dim=128, top_k=2048)})
    assert attention_parameters(sparse, 7168) - attention_parameters(LATENT, 7168) == 13_959_424


def test_biases_and_sinks_of_gpt_oss_are_counted() -> None:
    # 4,096 query, 512 key, 512 value and 2,880 output biases, and 64 sinks.
    assert attention_vectors(GPT_OSS, 2880) == 4096 + 512 + 512 + 2880 + 64
    experts = MoeFfn(kind="moe", experts=32, top_k=4, intermediate=2880, router_bias=True, bias=True)
    count = ffn_parameters(experts, 2880)
    assert count.router == 2880 * 32 + 32
    assert count.routed == 32 * (3 * 2880 * 2880 + 3 * 2880)


def test_norms_of_queries_and_keys_differ_by_kind() -> None:
    sizes = GroupedAttention(kind="gqa", heads=48, kv_heads=8, head_dim=128)
    per_head = sizes.model_copy(update={"qk_norm": "head"})
    whole = sizes.model_copy(update={"qk_norm": "projection"})
    assert [attention_vectors(each, 3072) for each in (sizes, per_head, whole)] == [0, 256, 56 * 128]


def test_an_output_gate_doubles_the_query() -> None:
    plain = GroupedAttention(kind="gqa", heads=32, kv_heads=2, head_dim=256)
    gated = plain.model_copy(update={"query_gate": True})
    assert attention_parameters(gated, 4096) - attention_parameters(plain, 4096) == 4096 * 32 * 256


def test_values_may_be_narrower_than_keys() -> None:
    sizes = GroupedAttention(kind="gqa", heads=64, kv_heads=4, head_dim=192, value_dim=128)
    assert [matrix.elements // 4096 for matrix in matrices(sizes, 4096)] == [12288, 768, 512, 8192]


def test_linear_attention_of_qwen35_by_hand() -> None:
    sizes = LinearAttention(kind="linear", key_heads=16, value_heads=64, key_dim=128, value_dim=128, convolution=4)
    projections = 4096 * (2 * 2048 + 2 * 8192 + 2 * 64) + 8192 * 4096
    assert attention_parameters(sizes, 4096) == projections + 4 * (2 * 2048 + 8192) + 2 * 64 + 128


def test_dense_blocks_have_two_or_three_matrices() -> None:
    gated = DenseFfn(kind="dense", intermediate=400)
    plain = DenseFfn(kind="dense", intermediate=400, gated=False, bias=True)
    assert ffn_parameters(gated, 100).dense == 3 * 100 * 400
    assert ffn_parameters(plain, 100).dense == 2 * 100 * 400 + 400 + 100


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        # Published: 70.6 B; DeepSeek-V3 671 B and 37 B; gpt-oss 116.8 B and 5.1 B, 20.9 B and 3.6 B; Kimi K2 32 B.
        ("llama-3.1-70b", 70_553_706_496, 69_503_033_344),
        ("deepseek-v3", 671_026_419_200, 36_625_618_432),
        ("gpt-oss-120b", 116_829_156_672, 5_132_849_472),
        ("gpt-oss-20b", 20_914_757_184, 3_608_307_264),
        ("qwen3-235b-a22b", 235_093_634_560, 21_568_433_664),
        ("kimi-k2", 1_026_408_232_448, 31_687_095_808),
        ("qwen3.5-397b-a17b", 396_346_350_336, 16_331_922_176),
    ],
)
def test_totals_and_active_parameters(name: str, total: int, active: int) -> None:
    count = parameters(model(name))
    assert (count.total, count.active) == (total, active)


def test_the_head_counts_as_active_and_the_tables_do_not() -> None:
    tied, untied, positions = (parameters(model(name)) for name in ("llama-3.2-1b", "llama-3.1-8b", "opt-175b"))
    assert tied.active == tied.total
    assert untied.total - untied.active == untied.embedding
    assert positions.total - positions.active == 2050 * 12288


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_the_active_part_is_never_more_than_the_whole(card: ModelCard) -> None:
    count = parameters(card)
    moe = any(isinstance(group.ffn, MoeFfn) for group in card.layers)
    assert count.active <= count.total
    assert (count.routed_active < count.routed) == moe
    assert (count.routed > 0.5 * count.total) == moe
