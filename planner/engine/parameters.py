"""Exact parameter counts of a model, by use.

Matrices come from :mod:`planner.engine.matrices`. Vectors (norms, biases, sinks, convolutions) are counted beside them,
so that the sum equals the published count of the checkpoint.
"""

from dataclasses import dataclass

from planner.engine.matrices import Part, ffn_matrices, matrices
from planner.spec.model import (
    Attention,
    DenseFfn,
    Ffn,
    GroupedAttention,
    LatentAttention,
    LinearAttention,
    ModelCard,
    MoeFfn,
)


@dataclass(frozen=True, slots=True)
class FfnParameters:
    """Parameters of one feed-forward block."""

    dense: int = 0
    router: int = 0
    routed: int = 0
    """All routed experts."""
    shared: int = 0

    @property
    def total(self) -> int:
        """All parameters of the block."""
        return self.dense + self.router + self.routed + self.shared


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a whole model, by use."""

    embedding: int
    """The input table."""
    head: int
    """The output matrix; 0 where it is the input table."""
    positions: int
    """Learnt position table."""
    norms: int
    """Norms of the stack; those inside attention count there."""
    attention: int
    dense: int
    router: int
    routed: int
    """All routed experts."""
    routed_active: int
    """The ``top_k`` experts that one token visits."""
    shared: int

    @property
    def total(self) -> int:
        """All parameters that an engine loads: no MTP, no vision tower, tied heads once."""
        return self.embedding + self.positions + self.body + self.head + self.routed

    @property
    def active(self) -> int:
        """Parameters that one token is multiplied with: N of the rule of 2 N FLOPs per token.

        Tables that are looked up (embedding, positions) do not count, the output head does even where it is tied.
        """
        return self.body + (self.head or self.embedding) + self.routed_active

    @property
    def body(self) -> int:
        """Parameters of the stack that every token passes."""
        return self.norms + self.attention + self.dense + self.router + self.shared


def attention_vectors(attention: Attention, hidden: int) -> int:
    """Parameters of an attention block outside its matrices: biases, norms, sinks, convolution, decay."""
    match attention:
        case GroupedAttention():
            queries = attention.heads * attention.head_dim
            keys = attention.kv_heads * attention.head_dim
            values = attention.kv_heads * (attention.value_dim or attention.head_dim)
            norms = {"none": 0, "head": 2 * attention.head_dim, "projection": queries + keys}[attention.qk_norm]
            biases = attention.qkv_bias * (queries * (1 + attention.query_gate) + keys + values)
            return norms + biases + attention.output_bias * hidden + attention.sinks * attention.heads
        case LatentAttention():
            # The indexer's key norm is a LayerNorm: weight and bias.
            indexer = 2 * attention.indexer.head_dim if attention.indexer else 0
            return (attention.query_rank or 0) + attention.kv_rank + indexer
        case LinearAttention():
            # Per value head a decay and a time step; one norm weight of a value head's width.
            return (
                _convolution_channels(attention) * attention.convolution
                + 2 * attention.value_heads
                + attention.value_dim
            )


def _convolution_channels(attention: LinearAttention) -> int:
    """Channels that pass the causal convolution: queries, keys and values."""
    return 2 * attention.key_heads * attention.key_dim + attention.value_heads * attention.value_dim


def attention_parameters(attention: Attention, hidden: int) -> int:
    """Parameters of one attention block: its matrices and its vectors.

    Examples
    --------
    DeepSeek-V3 has 187,107,328 per layer (128 heads of 128 + 64, ranks 1,536 and 512).

    >>> sizes = LatentAttention(
    ...     kind="mla", heads=128, query_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128
    ... )
    >>> attention_parameters(sizes, 7168)
    187107328

    """
    return sum(matrix.elements for matrix in matrices(attention, hidden)) + attention_vectors(attention, hidden)


def ffn_parameters(ffn: Ffn, hidden: int) -> FfnParameters:
    """Parameters of one feed-forward block, by use.

    Examples
    --------
    Mixtral 8x7B: eight experts of three 4,096 x 14,336 matrices and a router.

    >>> ffn_parameters(MoeFfn(kind="moe", experts=8, top_k=2, intermediate=14336), 4096)
    FfnParameters(dense=0, router=32768, routed=1409286144, shared=0)

    """
    size: dict[Part, int] = dict.fromkeys(("dense", "router", "routed", "shared"), 0)
    for matrix in ffn_matrices(ffn, hidden):
        size[matrix.part] += matrix.elements
    if isinstance(ffn, DenseFfn):
        size["dense"] += ffn.bias * ((1 + ffn.gated) * ffn.intermediate + hidden)
    else:
        size["router"] += ffn.router_bias * ffn.experts
        size["routed"] += ffn.bias * ffn.experts * (2 * ffn.intermediate + hidden)
    return FfnParameters(dense=size["dense"], router=size["router"], routed=size["routed"], shared=size["shared"])


def parameters(model: ModelCard) -> Parameters:
    """Count the parameters of a model as served.

    Parameters
    ----------
    model
        The card.

    Returns
    -------
    Counts by use; their sum is held against the card's published count by a test.

    """
    attention = dense = router = routed = routed_active = shared = 0
    for group in model.layers:
        ffn = ffn_parameters(group.ffn, model.hidden)
        attention += group.count * attention_parameters(group.attention, model.hidden)
        dense += group.count * ffn.dense
        router += group.count * ffn.router
        routed += group.count * ffn.routed
        shared += group.count * ffn.shared
        if isinstance(group.ffn, MoeFfn):
            routed_active += group.count * ffn.routed // group.ffn.experts * group.ffn.top_k
    table = model.vocabulary * model.hidden
    norm = model.hidden * (1 + model.norms.bias)
    return Parameters(
        embedding=table,
        head=0 if model.tied_embeddings else table,
        positions=model.learned_positions * model.hidden,
        norms=(model.depth * model.norms.per_layer + model.norms.extra) * norm,
        attention=attention,
        dense=dense,
        router=router,
        routed=routed,
        routed_active=routed_active,
        shared=shared,
    )
