"""KV bytes are exact, per accelerator."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.cache import cached_tokens, kv_bytes_per_token, sequence_bytes, state_bytes, token_bytes
from planner.spec.card import read_document
from planner.spec.model import GroupedAttention, Indexer, LatentAttention, LinearAttention, ModelCard

MODELS = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parents[2])) / "models"
LINEAR = LinearAttention(kind="linear", key_heads=16, value_heads=64, key_dim=128, value_dim=128, convolution=4)
LATENT = LatentAttention(kind="mla", heads=128, query_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128)
CARDS = {path.stem: read_document(path, ModelCard) for path in sorted(MODELS.glob("*.yaml"))}
DEGREES = np.array([1, 2, 4, 8, 16])


@pytest.mark.parametrize(
    ("name", "growing", "every_layer"),
    [
        ("llama-3.1-70b", 80 * 2 * 8 * 128 * 2, 327_680),
        ("llama-2-7b", 32 * 2 * 32 * 128 * 2, 524_288),
        ("deepseek-v3", 61 * 576 * 2, 61 * 576 * 2),
        ("deepseek-v3.2", 61 * (576 * 2 + 132), 78_324),
        ("gpt-oss-120b", 18 * 2 * 8 * 64 * 2, 36 * 2 * 8 * 64 * 2),
        ("gemma-3-27b", 81_920, 507_904),
        ("llama-4-scout", 12 * 2 * 8 * 128 * 2, 48 * 2 * 8 * 128 * 2),
        ("palm-540b", 118 * 2 * 256 * 2, 118 * 2 * 256 * 2),
        ("qwen3.5-397b-a17b", 15 * 2 * 2 * 256 * 2, 30_720),
    ],
)
def test_bytes_per_token_in_16_bits(name: str, growing: int, every_layer: int) -> None:
    card = CARDS[name]
    assert token_bytes(card, 16, 1, growing=True) == growing
    assert token_bytes(card, 16, 1, growing=False) == every_layer


def test_eight_bits_are_half_except_for_indexer_keys() -> None:
    assert token_bytes(CARDS["llama-3.1-70b"], 8, 1, growing=True) == 163_840
    sparse = LATENT.model_copy(update={"indexer": Indexer(heads=64, head_dim=128, top_k=2048)})
    assert (kv_bytes_per_token(sparse, 16, 1), kv_bytes_per_token(sparse, 8, 1)) == (1284, 708)


def test_more_accelerators_than_kv_heads_hold_copies() -> None:
    eight = GroupedAttention(kind="gqa", heads=64, kv_heads=8, head_dim=128)
    assert kv_bytes_per_token(eight, 16, DEGREES).tolist() == [4096, 2048, 1024, 512, 512]


def test_multi_query_attention_is_never_sharded() -> None:
    """PaLM 540B has one key/value head: Pope et al. shard its cache over the batch instead."""
    palm = CARDS["palm-540b"].layers[0].attention
    assert kv_bytes_per_token(palm, 16, DEGREES).tolist() == [1024] * 5


def test_the_latent_cache_is_never_sharded() -> None:
    assert kv_bytes_per_token(LATENT, 16, DEGREES).tolist() == [1152] * 5


def test_linear_attention_has_a_state_and_no_cache() -> None:
    assert kv_bytes_per_token(LINEAR, 16, DEGREES).tolist() == [0] * 5
    assert cached_tokens(LINEAR, np.array([1, 10**6])).tolist() == [0, 0]
    # 64 heads of 128 x 128 in FP32, and 3 inputs of 2 x 2,048 + 8,192 channels in 16 bits.
    assert state_bytes(LINEAR, DEGREES).tolist() == [(4_194_304 + 73_728) // tp for tp in (1, 2, 4, 8, 16)]
    assert state_bytes(LATENT, DEGREES).tolist() == [0] * 5


def test_a_sequence_of_qwen35_397b_holds_192_megabytes_of_state() -> None:
    card = CARDS["qwen3.5-397b-a17b"]
    assert sequence_bytes(card, 0, 16, 1) == 192_061_440
    assert sequence_bytes(card, 1600, 16, 1) == 192_061_440 + 1600 * 30_720


def test_windows_of_gemma_bound_the_cache() -> None:
    card = CARDS["gemma-3-27b"]
    contexts = np.array([512, 1024, 8192, 131072])
    freed = sequence_bytes(card, contexts, 16, 1)
    kept = sequence_bytes(card, contexts, 16, 1, windows=False)
    assert freed.tolist() == [81_920 * n + 425_984 * min(n, 1024) for n in contexts.tolist()]
    assert kept.tolist() == [507_904 * n for n in contexts.tolist()]


def test_layers_hold_whole_blocks() -> None:
    card = CARDS["llama-3.1-70b"]
    tokens = sequence_bytes(card, np.array([0, 1, 16, 17, 64]), 16, 1) // 327_680
    assert tokens.tolist() == [0, 16, 16, 32, 64]
    assert sequence_bytes(card, 1, 16, 1, block=64) == 64 * 327_680


@pytest.mark.parametrize("name", CARDS)
def test_columns_equal_a_loop_over_their_rows(name: str) -> None:
    card = CARDS[name]
    contexts = np.array([1, 100, 5000, 30000, 100000])
    column = sequence_bytes(card, contexts, 8, DEGREES)
    rows = [sequence_bytes(card, int(n), 8, int(tp)) for n, tp in zip(contexts, DEGREES, strict=True)]
    np.testing.assert_array_equal(column, rows)
    assert column.dtype == np.int64


@given(name=st.sampled_from(list(CARDS)), context=st.integers(0, 200_000), tp=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_more_accelerators_never_hold_more_and_never_lose_any(name: str, context: int, tp: int) -> None:
    one, many = (int(sequence_bytes(CARDS[name], context, 16, degree)) for degree in (1, tp))
    assert many <= one <= many * tp


@given(name=st.sampled_from(list(CARDS)), context=st.integers(0, 200_000), more=st.integers(0, 10_000))
def test_longer_sequences_never_hold_less(name: str, context: int, more: int) -> None:
    card = CARDS[name]
    short, long = sequence_bytes(card, np.array([context, context + more]), 16, 1).tolist()
    assert short <= long <= short + (more + 15) * token_bytes(card, 16, 1, growing=False)
    assert long <= sequence_bytes(card, context + more, 16, 1, windows=False)
