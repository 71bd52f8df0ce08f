"""What attention itself costs: pairs of queries and keys, bytes of cache, states of linear attention.

Counts are per accelerator and per layer; shapes (n,) are rows of layouts, further axes broadcast.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.cache import INDEX_SCALE_BYTES, kv_bytes_per_token, state_bytes

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints
    from planner.spec.model import Attention

WIDTH = {"bf16": 2.0, "fp8": 1.0}
"""Bytes of an element of the KV cache."""
STATE_PASSES = 2.0
"""A recurrent state is read and written in each step."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Attention of one layer on one accelerator; columns of shape (n,), one row per layout."""

    pair_flops: "Floats"
    """FLOPs of one query-key pair in prefill [FLOP]."""
    decode_flops: "Floats"
    """FLOPs of one query-key pair in decode [FLOP]; MLA decodes in its latent space."""
    token_bytes: "Floats"
    """Cache bytes of one context token [B]."""
    sequence_bytes: "Floats"
    """Bytes that a decode step moves for one sequence whatever its context [B]."""
    token_flops: "Floats"
    """FLOPs of one new token whatever its context [FLOP]."""
    window: float
    """Keys that a query can see at most."""
    index_bytes: float
    """Bytes of the sparse-attention index read for one context token [B]."""
    index_flops: float
    """FLOPs of scoring one key for one query, before ``window`` is applied [FLOP]; every accelerator scores all."""
    local_heads: "Floats"
    """KV heads on one accelerator."""


def cost(attention: "Attention", tp: "Ints", kv: str) -> Cost:
    """Count attention under TP: heads are divided, KV heads at most to one a rank, MLA's latent cache not at all.

    MLA prefill runs with expanded heads, decode with absorbed up-projections in the latent space (DeepSeek-V2,
    arXiv:2405.04434, section 2.1). A sparse-attention index scores all keys with its own heads before the best are read
    (DeepSeek-V3.2, arXiv:2512.02556, section 2). Linear attention keeps one state of key_dim x value_dim per value head
    and passes it three times with 2 FLOPs an element: decay and delta, update, read (Yang et al., *Gated Delta
    Networks*, arXiv:2412.06464).

    >>> from planner.spec.model import GroupedAttention
    >>> a = GroupedAttention(kind="gqa", heads=64, kv_heads=8, head_dim=128)
    >>> cost(a, np.array([1, 8, 16]), "bf16").token_bytes
    array([4096.,  512.,  512.])
    """
    zero = np.zeros(len(tp))
    stored = kv_bytes_per_token(attention, int(8 * WIDTH[kv]), tp).astype(float)
    if attention.kind == "gqa":
        value = attention.value_dim or attention.head_dim
        local = np.maximum(1.0, attention.kv_heads / tp)
        pair = 2.0 * (attention.heads / tp) * (attention.head_dim + value)
        window = float(attention.window) if attention.window else np.inf
        return Cost(pair, pair, stored, zero, zero, window, 0.0, 0.0, local)
    if attention.kind == "mla":
        heads, latent = attention.heads / tp, attention.kv_rank
        pair = 2.0 * heads * (attention.nope_dim + attention.rope_dim + attention.value_dim)
        decode = 2.0 * heads * (2.0 * latent + attention.rope_dim)
        window, index, scoring = np.inf, 0.0, 0.0
        if attention.indexer:
            one = attention.indexer
            window, index, scoring = float(one.top_k), one.head_dim + INDEX_SCALE_BYTES, 2.0 * one.heads * one.head_dim
        return Cost(pair, decode, stored - index, zero, zero, window, index, scoring, zero + 1.0)
    heads = attention.value_heads / tp
    moved = STATE_PASSES * state_bytes(attention, tp).astype(float)
    worked = 6.0 * heads * attention.key_dim * attention.value_dim
    return Cost(zero, zero, zero, moved, worked, 0.0, 0.0, 0.0, np.maximum(heads, 1.0))


def causal_pairs(start: "Floats", tokens: "Floats", window: float) -> "Floats":
    """Query-key pairs of ``tokens`` new tokens behind ``start`` earlier ones, each seeing ``window`` keys at most.

    The integral of min(x, window) from start to start + tokens.

    >>> causal_pairs(np.array([0.0, 100.0, 0.0]), np.array([100.0, 100.0, 100.0]), np.array([1e9, 1e9, 10.0]))
    array([ 5000., 15000.,   950.])
    """

    def below(x: "Floats") -> "Floats":
        inside = np.minimum(x, window)
        with np.errstate(invalid="ignore"):
            outside = np.where(x > inside, (x - inside) * window, 0.0)
        return inside * inside / 2.0 + outside

    return below(np.asarray(start + tokens, float)) - below(np.asarray(start, float))
