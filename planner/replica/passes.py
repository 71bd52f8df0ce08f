"""Step times of one replica as tables over its tokens and its batch, so that fixed points only interpolate.

A step's linear part depends on its tokens alone and is tabulated once per layout; token budgets and batch limits share
it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.step import body, column, decode_attention, fullest, head, total

if TYPE_CHECKING:
    from planner.engine.step import Machine, OperatorTime
    from planner.numeric import Floats, Ints
    from planner.replica.adapters import Adapted
    from planner.workload.stats import Bins

_FEW = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 112, 128, 144, 152, 160, 192, 224)
_KNEE = (256, 272, 288, 304, 320, 336, 360, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960, 1024, 1088, 1152)
_MANY = (
    1280,
    1408,
    1536,
    1792,
    2048,
    2304,
    2688,
    3072,
    3328,
    3584,
    4096,
    4608,
    5120,
    6144,
    7168,
    8192,
    9216,
    10240,
    12288,
    16384,
    32768,
)
TOKENS = np.array([*_FEW, *_KNEE, *_MANY], float)
"""Tokens of one attention rank at which the linear part is evaluated; linear between them, which errs by 2 % at most.

Points are dense where arithmetic begins to bind, and where few tokens visit few experts.
"""
_SOME = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 640)
BATCHES = np.array([*_SOME, 1024, 1536, 2048, 3072, 4096], float)
"""Sequences of one replica at which decode steps are evaluated; linear between them."""


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Step times of every layout of a machine."""

    machine: "Machine"
    tokens: "Floats"
    """Linear part of a step, (n, len(TOKENS)) [s]."""
    decode: "Floats"
    """Whole decode step, (n, len(BATCHES)) [s]."""
    rank_tokens: "Floats"
    """Tokens of the fullest rank in a micro-batch, (n, len(BATCHES))."""

    def linear(self, row: "Ints", tokens: "Floats") -> "Floats":
        """Linear part of a step of ``tokens`` (r, ...) tokens per rank for the layouts ``row`` (r,) [s].

        Linear between grid points, and in proportion beyond the last one.
        """
        flat = np.reshape(tokens, (len(row), -1))
        inside = np.minimum(flat, TOKENS[-1])
        out = np.empty(flat.shape)
        # Rows of one layout mostly lie side by side, so each run of them is one call without a copy.
        ends = np.flatnonzero(np.diff(row, append=-1)) + 1
        start = 0
        for end in ends.tolist():
            out[start:end] = np.interp(inside[start:end], TOKENS, self.tokens[row[start]])
            start = end
        if flat.size and flat.max() > TOKENS[-1]:
            rate = (self.tokens[row, -1] - self.tokens[row, -2]) / (TOKENS[-1] - TOKENS[-2])
            out += (flat - inside) * rate[:, np.newaxis]
        return out.reshape(np.shape(tokens))


def decode_operators(
    m: "Machine", batch: "Floats", contexts: "Bins", adapted: "Adapted | None" = None
) -> "tuple[OperatorTime, ...]":
    """Operators of one decode step with ``batch`` (n, g) sequences in the replica."""
    rank = rank_batch(m, batch)
    times = (*body(m, rank), head(m, rank), decode_attention(m, rank, (contexts.value, contexts.share)))
    return (*times, *adapted.operators(m, rank, batch)) if adapted else times


def rank_batch(m: "Machine", batch: "Floats") -> "Floats":
    """Sequences of the fullest rank in one micro-batch: a pipeline of p stages runs p micro-batches, (n, g)."""
    parts = np.maximum(batch / column(m.layouts.pp), 1.0)
    return fullest(parts, column(m.layouts.dp))


def tabulate(m: "Machine", contexts: "Bins", adapted: "Adapted | None" = None) -> Passes:
    """Evaluate every layout on the grids.

    A micro-batch of a pipeline passes all stages before its sequences get a token, so a decode step costs the latency
    of one micro-batch.
    """
    shape = (len(m.layouts), 1)
    tokens = total(body(m, TOKENS))
    batch = BATCHES * np.ones(shape)
    rank = rank_batch(m, batch)
    row = np.arange(len(m.layouts))
    if adapted:
        tokens = tokens + total(adapted.operators(m, TOKENS * np.ones(shape), np.ones(shape)))
    decode = total((head(m, rank), decode_attention(m, rank, (contexts.value, contexts.share))))
    if adapted:
        decode = decode + adapted.reading(m, batch)
    tables = Passes(m, np.broadcast_to(tokens, (len(row), len(TOKENS))), decode, rank)
    return Passes(m, tables.tokens, decode + tables.linear(row, rank), rank)
