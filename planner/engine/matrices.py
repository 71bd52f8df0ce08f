"""The weight matrices of a model's blocks: their shapes, and what tensor parallelism divides.

The matrices are the unit of account: a token costs ``2 * elements`` FLOPs in each matrix that it passes, and an
accelerator reads ``Matrix.held(tp)`` elements of it.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from planner.numeric import Ints
from planner.spec.model import (
    Attention,
    DenseFfn,
    Ffn,
    GroupedAttention,
    Indexer,
    LatentAttention,
    LinearAttention,
)

Part = Literal["attention", "dense", "router", "routed", "shared"]
"""What a matrix belongs to."""
Count = TypeVar("Count", int, Ints)
"""A whole number, or a column of them."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight matrix that a token is multiplied with."""

    name: str
    rows: int
    """Input width."""
    columns: int
    """Output width."""
    part: Part
    split: Literal["columns", "rows", "none"] = "none"
    """What tensor parallelism cuts: output columns, input rows, or nothing (every accelerator holds it whole)."""
    units: int = 1
    """Equal pieces that the cut side consists of (heads, inner columns). More accelerators than pieces hold copies."""
    copies: int = 1
    """Matrices of this shape in the layer: the routed experts."""

    @property
    def elements(self) -> int:
        """Weights of all copies."""
        return self.rows * self.columns * self.copies

    @property
    def sharded(self) -> bool:
        """Whether tensor parallelism divides the matrix."""
        return self.units > 1

    def held(self, tp: Count) -> Count:
        """Weights of one copy on one of ``tp`` accelerators.

        Parameters
        ----------
        tp
            Tensor-parallel degree, scalar or shape (n,).

        Returns
        -------
        Elements, of the shape of ``tp``: the largest share where the pieces do not divide evenly.

        Examples
        --------
        Eight key heads of 128 on 4 accelerators are two heads each; on 16, each holds one, twice over.

        >>> key = Matrix("key", 8192, 8 * 128, "attention", "columns", units=8)
        >>> key.held(4) // 8192, key.held(16) // 8192
        (256, 128)

        """
        return -(-self.units // tp) * (self.rows * self.columns // self.units)


def matrices(attention: Attention, hidden: int) -> tuple[Matrix, ...]:
    """Weight matrices of one attention block, in the order in which a token passes them.

    Parameters
    ----------
    attention
        Its dimensions.
    hidden
        Model width.

    References
    ----------
    Latent attention: DeepSeek-V2 (arXiv:2405.04434), equations 9 to 13. Indexer: DeepSeek-V3.2 (arXiv:2512.02556),
    section 2. Gated delta rule: Yang et al. (arXiv:2412.06464), as laid out in the Qwen3-Next checkpoints.

    Examples
    --------
    Llama 3.1 8B: 32 query heads, 8 key/value heads of width 128, model width 4,096.

    >>> sizes = GroupedAttention(kind="gqa", heads=32, kv_heads=8, head_dim=128)
    >>> [(matrix.name, matrix.columns) for matrix in matrices(sizes, 4096)]
    [('query', 4096), ('key', 1024), ('value', 1024), ('output', 4096)]

    """
    match attention:
        case GroupedAttention():
            return _grouped(attention, hidden)
        case LatentAttention():
            return _latent(attention, hidden)
        case LinearAttention():
            return _linear(attention, hidden)


def ffn_matrices(ffn: Ffn, hidden: int) -> tuple[Matrix, ...]:
    """Weight matrices of one feed-forward block; ``copies`` is the number of routed experts.

    Parameters
    ----------
    ffn
        Its dimensions.
    hidden
        Model width.

    """
    if isinstance(ffn, DenseFfn):
        return _perceptron("dense", hidden, ffn.intermediate, gated=ffn.gated)
    shared: tuple[Matrix, ...] = ()
    if ffn.shared_intermediate:
        shared = _perceptron("shared", hidden, ffn.shared_intermediate)
    if ffn.shared_gate:
        shared = (*shared, Matrix("shared_scale", hidden, 1, "shared"))
    router = Matrix("router", hidden, ffn.experts, "router")
    return (router, *_perceptron("routed", hidden, ffn.intermediate, copies=ffn.experts), *shared)


def _grouped(attention: GroupedAttention, hidden: int) -> tuple[Matrix, ...]:
    heads, kv_heads = attention.heads, attention.kv_heads
    value_dim = attention.value_dim or attention.head_dim
    query_dim = attention.head_dim * (2 if attention.query_gate else 1)
    return (
        Matrix("query", hidden, heads * query_dim, "attention", "columns", heads),
        Matrix("key", hidden, kv_heads * attention.head_dim, "attention", "columns", kv_heads),
        Matrix("value", hidden, kv_heads * value_dim, "attention", "columns", kv_heads),
        Matrix("output", heads * value_dim, hidden, "attention", "rows", heads),
    )


def _latent(attention: LatentAttention, hidden: int) -> tuple[Matrix, ...]:
    heads, rank = attention.heads, attention.query_rank
    query_dim = attention.nope_dim + attention.rope_dim
    down = (Matrix("query_down", hidden, rank, "attention"),) if rank else ()
    indexer = _indexer(attention.indexer, hidden, rank or hidden) if attention.indexer else ()
    return (
        *down,
        Matrix("query_up", rank or hidden, heads * query_dim, "attention", "columns", heads),
        Matrix("kv_down", hidden, attention.kv_rank + attention.rope_dim, "attention"),
        *indexer,
        Matrix(
            "kv_up",
            attention.kv_rank,
            heads * (attention.nope_dim + attention.value_dim),
            "attention",
            "columns",
            heads,
        ),
        Matrix("output", heads * attention.value_dim, hidden, "attention", "rows", heads),
    )


def _indexer(indexer: Indexer, hidden: int, query_width: int) -> tuple[Matrix, ...]:
    """Every accelerator scores all keys, so nothing here is cut."""
    return (
        Matrix("index_query", query_width, indexer.heads * indexer.head_dim, "attention"),
        Matrix("index_key", hidden, indexer.head_dim, "attention"),
        Matrix("index_weights", hidden, indexer.heads, "attention"),
    )


def _linear(attention: LinearAttention, hidden: int) -> tuple[Matrix, ...]:
    keys = attention.key_heads * attention.key_dim
    values = attention.value_heads * attention.value_dim
    return (
        Matrix("query", hidden, keys, "attention", "columns", attention.key_heads),
        Matrix("key", hidden, keys, "attention", "columns", attention.key_heads),
        Matrix("value", hidden, values, "attention", "columns", attention.value_heads),
        Matrix("gate", hidden, values, "attention", "columns", attention.value_heads),
        Matrix("beta", hidden, attention.value_heads, "attention", "columns", attention.value_heads),
        Matrix("decay", hidden, attention.value_heads, "attention", "columns", attention.value_heads),
        Matrix("output", values, hidden, "attention", "rows", attention.value_heads),
    )


def _perceptron(
    part: Literal["dense", "routed", "shared"], hidden: int, inner: int, *, gated: bool = True, copies: int = 1
) -> tuple[Matrix, ...]:
    up = Matrix(f"{part}_up", hidden, inner, part, "columns", inner, copies)
    down = Matrix(f"{part}_down", inner, hidden, part, "rows", inner, copies)
    gate = (Matrix(f"{part}_gate", hidden, inner, part, "columns", inner, copies),) if gated else ()
    return (*gate, up, down)
