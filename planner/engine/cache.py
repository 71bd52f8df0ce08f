"""Exact bytes of the KV cache and of recurrent states, per accelerator.

Nothing here knows about memory size or about other sequences: these are the coefficients that a capacity is divided by.
"""

from typing import assert_never

import numpy as np

from planner.engine.matrices import Count
from planner.numeric import Ints
from planner.spec.model import Attention, GroupedAttention, LatentAttention, LinearAttention, ModelCard

INDEX_SCALE_BYTES = 4
"""Bytes of the FP32 scale beside each FP8 indexer key (DeepSeek-V3.2 reference inference code)."""
CONVOLUTION_BYTES = 2
"""Bytes of an element of the convolution state, which is kept in the model's own 16-bit format."""


def kv_bytes_per_token(attention: Attention, bits: int, tp: Count) -> Count:
    """Bytes that one token adds to the cache of one layer, on each of ``tp`` accelerators.

    Key/value heads are dealt out; where there are more accelerators than heads, each head is held more than once. The
    latent vector of MLA is needed whole by every query head, so tensor parallelism does not divide it. Indexer keys
    are FP8 with a scale, whatever the format of the cache. Linear attention adds nothing.

    Parameters
    ----------
    attention
        Dimensions of the layer's attention.
    bits
        Bits of an element of the cache, 16 or 8.
    tp
        Tensor-parallel degree, scalar or shape (n,).

    Returns
    -------
    Bytes, of the shape of ``tp``.

    References
    ----------
    Grouped heads: Ainslie et al. (arXiv:2305.13245). Latent vector: DeepSeek-V2 (arXiv:2405.04434), table 1.

    Examples
    --------
    Eight heads of 128 in 16 bits are 4,096 bytes; on 8 accelerators 512 each, and on 16 still 512.

    >>> sizes = GroupedAttention(kind="gqa", heads=64, kv_heads=8, head_dim=128)
    >>> [kv_bytes_per_token(sizes, 16, tp) for tp in (1, 8, 16)]
    [4096, 512, 512]

    """
    match attention:
        case GroupedAttention():
            width = attention.head_dim + (attention.value_dim or attention.head_dim)
            return -(-attention.kv_heads // tp) * (width * bits // 8)
        case LatentAttention():
            index = attention.indexer.head_dim + INDEX_SCALE_BYTES if attention.indexer else 0
            return 0 * tp + ((attention.kv_rank + attention.rope_dim) * bits // 8 + index)
        case LinearAttention():
            return 0 * tp
        case _:
            assert_never(attention)


def state_bytes(attention: Attention, tp: Count) -> Count:
    """Bytes of the fixed state of one sequence in one layer, on each of ``tp`` accelerators.

    A state of key width times value width per value head, and the last inputs of the causal convolution. Softmax
    attention has none.

    Parameters
    ----------
    attention
        Dimensions of the layer's attention.
    tp
        Tensor-parallel degree, scalar or shape (n,).

    Returns
    -------
    Bytes, of the shape of ``tp``.

    Examples
    --------
    Qwen3.5 397B: 64 value heads with a 128 x 128 FP32 state, and 3 inputs of 12,288 channels.

    >>> sizes = LinearAttention(
    ...     kind="linear", key_heads=16, value_heads=64, key_dim=128, value_dim=128, convolution=4
    ... )
    >>> state_bytes(sizes, 1), state_bytes(sizes, 8)
    (4268032, 533504)

    """
    if not isinstance(attention, LinearAttention):
        return 0 * tp
    recurrent = attention.key_dim * attention.value_dim * attention.state_bits // 8
    past = (attention.convolution - 1) * CONVOLUTION_BYTES
    keys = -(-attention.key_heads // tp) * (2 * attention.key_dim * past)
    return keys + -(-attention.value_heads // tp) * (recurrent + attention.value_dim * past)


def cached_tokens(attention: Attention, context: int | Ints) -> Ints:
    """Tokens of a sequence that one layer keeps: the context, at most the window, none for linear attention.

    Parameters
    ----------
    attention
        Dimensions of the layer's attention.
    context
        Tokens of the sequence, scalar or shape (n,).

    Examples
    --------
    >>> sizes = GroupedAttention(kind="gqa", heads=64, kv_heads=8, head_dim=64, window=128)
    >>> cached_tokens(sizes, np.array([100, 4096])).tolist()
    [100, 128]

    """
    tokens = np.asarray(context, np.int64)
    if isinstance(attention, LinearAttention):
        return np.zeros_like(tokens)
    if isinstance(attention, GroupedAttention) and attention.window is not None:
        return np.minimum(tokens, attention.window)
    return tokens


def token_bytes(model: ModelCard, bits: int, tp: Count, *, growing: bool) -> Count:
    """Bytes that one more token adds over the whole stack, on each of ``tp`` accelerators.

    Parameters
    ----------
    model
        The card.
    bits
        Bits of an element of the cache, 16 or 8.
    tp
        Tensor-parallel degree, scalar or shape (n,).
    growing
        Whether to count only the layers whose cache still grows when every window is full; else all layers.

    Returns
    -------
    Bytes, of the shape of ``tp``.

    """
    total = 0 * tp
    for group in model.layers:
        windowed = isinstance(group.attention, GroupedAttention) and group.attention.window is not None
        if not (growing and windowed):
            total = total + group.count * kv_bytes_per_token(group.attention, bits, tp)
    return total


def sequence_bytes(
    model: ModelCard, context: int | Ints, bits: int, tp: int | Ints, block: int = 16, *, windows: bool = True
) -> Ints:
    """Bytes of one sequence over the whole stack, on each of ``tp`` accelerators.

    Every layer holds whole blocks of tokens. Recurrent states are added; they do not depend on the context.

    Parameters
    ----------
    model
        The card.
    context
        Tokens of the sequence, scalar or shape (n,).
    bits
        Bits of an element of the cache, 16 or 8.
    tp
        Tensor-parallel degree, scalar or shape (n,).
    block
        Tokens of a cache block.
    windows
        Whether the engine frees the blocks that have left a layer's window; else windowed layers keep all tokens.

    Returns
    -------
    Bytes, of the common shape of ``context`` and ``tp``.

    References
    ----------
    Blocks: Kwon et al., *Efficient Memory Management for Large Language Model Serving with PagedAttention*, SOSP 2023,
    section 4.1.

    """
    tokens, degree = np.broadcast_arrays(np.asarray(context, np.int64), np.asarray(tp, np.int64))
    total = np.zeros_like(tokens)
    for group in model.layers:
        kept = cached_tokens(group.attention, tokens) if windows else tokens
        held = -(-kept // block) * block
        per_layer = held * kv_bytes_per_token(group.attention, bits, degree) + state_bytes(group.attention, degree)
        total = total + group.count * per_layer
    return total
