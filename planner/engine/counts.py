"""What one pass costs, counted from the card: FLOPs and bytes of each operator on one accelerator.

Linear layers are counted per token (2 FLOPs for each weight that a token meets: Kaplan et al. 2020, section 2.1), so
that one count serves every batch size. Attention is counted in :mod:`planner.engine.attention`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.chip import ACTIVATION_BYTES, BITS

if TYPE_CHECKING:
    from planner.engine.layouts import Layouts
    from planner.numeric import Floats, Ints
    from planner.spec.model import Checkpoint, DenseFfn, LayerGroup, ModelCard, MoeFfn, NumberFormat


@dataclass(frozen=True, slots=True)
class Linear:
    """A dense matrix product, on one accelerator; columns of shape (n,), one row per layout."""

    name: str
    layers: int
    """Layers that run it in one pass."""
    flops: "Floats"
    """FLOPs of one token [FLOP]."""
    weight: "Floats"
    """Weights read in a pass [B]."""
    traffic: "Floats"
    """Activations read and written for one token [B]."""
    wide: bool
    """Whether the weights are in 16 bits, whatever the model's format."""


@dataclass(frozen=True, slots=True)
class Routed:
    """The routed experts of a layer group, on one accelerator; columns of shape (n,)."""

    name: str
    layers: int
    experts: int
    """Routed experts of the whole model."""
    top_k: int
    local: "Floats"
    """Experts that have a shard on one accelerator."""
    row_flops: "Floats"
    """FLOPs of one token in one expert's shard [FLOP]."""
    weight: "Floats"
    """Weights of one expert's shard [B]."""
    traffic: "Floats"
    """Activations read and written for one token in one expert [B]."""


def _linear(
    name: str,
    layers: int,
    shape: "tuple[Floats | Ints | float, Floats | Ints | float]",
    bits: float,
    table: int,
) -> Linear:
    # The sides of the matrix on one accelerator, in each of the table's layouts.
    rows, columns = (np.asarray(side, float) + np.zeros(table) for side in shape)
    return Linear(
        name,
        layers,
        flops=2.0 * rows * columns,
        weight=rows * columns * bits / 8.0,
        traffic=ACTIVATION_BYTES * (rows + columns),
        wide=bits == BITS["bf16"],
    )


def _attention(group: "LayerGroup", hidden: int, tp: "Ints", bits: float) -> list[Linear]:
    """Projections around attention. KV heads are replicated where TP exceeds them; MLA's down-projections always."""
    a, n = group.attention, group.count
    parts: list[tuple[str, tuple[Floats | Ints | float, Floats | Ints | float]]]
    if a.kind == "gqa":
        value = a.value_dim or a.head_dim
        local = np.maximum(1, a.kv_heads // tp)
        into = a.heads // tp * a.head_dim * (2 if a.query_gate else 1) + local * (a.head_dim + value)
        parts = [("qkv projection", (hidden, into)), ("output projection", (a.heads // tp * value, hidden))]
    elif a.kind == "mla":
        heads = a.heads // tp
        query = a.query_rank
        down = a.kv_rank + a.rope_dim + (query or 0)
        if a.indexer:
            down += a.indexer.head_dim + a.indexer.heads
        parts = [
            ("latent down-projection", (hidden, down)),
            ("query up-projection", (query or hidden, heads * (a.nope_dim + a.rope_dim))),
            ("latent up-projection", (a.kv_rank, heads * (a.nope_dim + a.value_dim))),
            ("output projection", (heads * a.value_dim, hidden)),
        ]
        if a.indexer:
            parts.insert(2, ("index query", (query or hidden, a.indexer.heads * a.indexer.head_dim)))
    else:
        into = (2 * a.key_heads * a.key_dim + 2 * a.value_heads * a.value_dim + 2 * a.value_heads) // tp
        parts = [
            ("qkvz projection", (hidden, into)),
            ("output projection", (a.value_heads // tp * a.value_dim, hidden)),
        ]
    return [_linear(name, n, shape, bits, len(tp)) for name, shape in parts]


def _dense(ffn: "DenseFfn", group: "LayerGroup", hidden: int, tp: "Ints", bits: float) -> list[Linear]:
    inner = ffn.intermediate / tp
    up = _linear("ffn up", group.count, (hidden, inner * (2 if ffn.gated else 1)), bits, len(tp))
    return [up, _linear("ffn down", group.count, (inner, hidden), bits, len(tp))]


def _around_experts(ffn: "MoeFfn", group: "LayerGroup", hidden: int, tp: "Ints", bits: float) -> list[Linear]:
    parts = [_linear("router", group.count, (hidden, ffn.experts), BITS["bf16"], len(tp))]
    if ffn.shared_intermediate:
        inner = ffn.shared_intermediate / tp
        parts.append(_linear("shared expert up", group.count, (hidden, 2 * inner), bits, len(tp)))
        parts.append(_linear("shared expert down", group.count, (inner, hidden), bits, len(tp)))
    return parts


def _routed(ffn: "MoeFfn", group: "LayerGroup", hidden: int, layouts: "Layouts", bits: float) -> Routed:
    inner = ffn.intermediate / layouts.expert_tp
    return Routed(
        "routed experts",
        group.count,
        ffn.experts,
        ffn.top_k,
        local=ffn.experts / layouts.ep,
        row_flops=2.0 * 3.0 * hidden * inner,
        weight=3.0 * hidden * inner * bits / 8.0,
        traffic=ACTIVATION_BYTES * (2.0 * hidden + 3.0 * inner),
    )


def operators(
    model: "ModelCard", weights: "NumberFormat", checkpoint: "Checkpoint", layouts: "Layouts"
) -> tuple[tuple[Linear, ...], tuple[Routed, ...], Linear]:
    """Count the linear layers, the routed experts and the output head for each layout.

    Embedding, head and router stay in 16 bits; where the checkpoint quantises the experts alone, so do attention and
    dense layers.
    """
    bits = BITS[weights]
    rest = BITS["bf16"] if checkpoint.covers == "experts" else bits
    linear: list[Linear] = []
    routed: list[Routed] = []
    for group in model.layers:
        linear += _attention(group, model.hidden, layouts.tp, rest)
        if group.ffn.kind == "dense":
            linear += _dense(group.ffn, group, model.hidden, layouts.tp, rest)
        else:
            linear += _around_experts(group.ffn, group, model.hidden, layouts.tp, rest)
            routed.append(_routed(group.ffn, group, model.hidden, layouts, bits))
    head = _linear("output head", 1, (model.hidden, model.vocabulary / layouts.tp), BITS["bf16"], len(layouts))
    return tuple(linear), tuple(routed), head


def distinct_experts(experts: "Floats | float", top_k: float, tokens: "Floats") -> "Floats":
    r"""Return the expected number of different experts that ``tokens`` tokens visit.

    .. math:: E (1 - (1 - k / E)^b)

    Each token picks k of E at random; the expectation is exact by linearity (the coupon collector with groups).

    >>> distinct_experts(8, 2, np.array([1.0, 4.0, 1000.0])).round(3)
    array([2.   , 5.469, 8.   ])
    """
    return experts * -np.expm1(tokens * np.log1p(-np.minimum(top_k / np.asarray(experts, float), 1 - 1e-12)))


def stage_share(model: "ModelCard", layouts: "Layouts") -> "Floats":
    """Share of the layers that the fullest pipeline stage holds, (n,): stages hold whole layers.

    Of 61 layers in two stages, one has 31.
    """
    return np.asarray(np.ceil(model.depth / layouts.pp) / model.depth, float)


def weight_bytes(model: "ModelCard", weights: "NumberFormat", checkpoint: "Checkpoint", layouts: "Layouts") -> "Floats":
    """Weights held by one accelerator of the fullest stage, (n,) [B]: embedding and head are divided over TP.

    Norms and biases are below 0.1 % and left out; the first or last stage also holds an embedding table.
    """
    linear, routed, head = operators(model, weights, checkpoint, layouts)
    layers = sum((op.layers * op.weight for op in linear), np.zeros(len(layouts)))
    layers = layers + sum((op.layers * op.local * op.weight for op in routed), np.zeros(len(layouts)))
    tables = 1 if model.tied_embeddings else 2
    ends = np.where(layouts.pp > 1, 1.0, float(tables)) * head.weight
    return layers * stage_share(model, layouts) + ends + model.learned_positions * model.hidden * ACTIVATION_BYTES
