"""Layouts of one replica: what each axis of parallelism divides, and which layouts an engine can load.

Accelerators of a replica = tp x pp x dp. ``dp`` is attention data parallelism inside the replica; ``ep`` divides
tp x dp: experts are spread over ``ep`` groups, and each expert is cut ``tp * dp / ep`` ways.
"""

from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Self

import numpy as np

from planner.engine.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.engine.chip import Chip
    from planner.numeric import Bools, Ints
    from planner.spec.engine import Parallelism
    from planner.spec.model import Checkpoint, LayerGroup, ModelCard

LARGEST = 64
"""Most accelerators of one replica that are tried."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """One row per layout; every column has shape (n,)."""

    tp: "Ints"
    """Tensor-parallel degree."""
    pp: "Ints"
    """Pipeline stages."""
    dp: "Ints"
    """Attention data-parallel ranks inside the replica."""
    ep: "Ints"
    """Groups that experts are spread over."""

    @classmethod
    def of(cls, rows: "Iterable[tuple[int, int, int, int]]") -> Self:
        """Make a table from (tp, pp, dp, ep) tuples.

        >>> Layouts.of([(4, 1, 1, 1), (4, 1, 2, 8)]).accelerators
        array([4, 8])
        """
        table = np.array(list(rows), np.int64).reshape(-1, 4)
        return cls(*(table[:, axis] for axis in range(4)))

    def __len__(self) -> int:
        """Rows of the table."""
        return len(self.tp)

    def rows(self, index: "Ints | Bools") -> Self:
        """Return the same table with only the rows of ``index``."""
        return type(self)(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    @property
    def accelerators(self) -> "Ints":
        """Accelerators of one replica, (n,)."""
        return self.tp * self.pp * self.dp

    @property
    def expert_tp(self) -> "Ints":
        """Ways in which one expert is cut, (n,); 1 where ``ep`` does not divide tp x dp, which no engine loads."""
        ways: Ints = np.maximum(self.tp * self.dp // self.ep, 1)
        return ways


def candidates(model: "ModelCard", largest: int = LARGEST) -> Layouts:
    """All layouts worth judging, legal or not, in a fixed order: powers of two up to ``largest`` accelerators.

    Data-parallel attention inside a replica pays only where experts are spread over it, so dense models have dp = 1.
    """
    powers = [2**k for k in range(largest.bit_length()) if 2**k <= largest]
    sparse = model.sparse
    rows = []
    for pp, dp, tp in product(powers, powers if sparse else [1], powers):
        if tp * pp * dp > largest or pp > model.depth or (pp > 1 and dp > 1):
            continue
        spread = sorted({1 if dp == 1 else tp * dp, tp * dp}) if sparse else [1]
        rows += [(tp, pp, dp, ep) for ep in spread]
    return Layouts.of(sorted(rows, key=lambda row: (row[0] * row[1] * row[2], row[1], row[2], row[3])))


def _attention_divides(group: "LayerGroup", tp: "Ints") -> "Bools":
    attention = group.attention
    whole: Bools
    if attention.kind == "gqa":
        cut = (attention.kv_heads % tp == 0) | (tp % attention.kv_heads == 0)
        whole = (attention.heads % tp == 0) & cut
    elif attention.kind == "mla":
        whole = attention.heads % tp == 0
    else:
        whole = (attention.key_heads % tp == 0) & (attention.value_heads % tp == 0)
    return whole


def _widths(group: "LayerGroup", layouts: Layouts) -> "list[tuple[int, Ints, bool]]":
    """Feed-forward widths with the ways they are cut, and whether they are routed experts."""
    ffn = group.ffn
    if ffn.kind == "dense":
        return [(ffn.intermediate, layouts.tp, False)]
    shared = [(ffn.shared_intermediate, layouts.tp, False)] if ffn.shared_intermediate else []
    return [(ffn.intermediate, layouts.expert_tp, True), *shared]


def legality(
    model: "ModelCard", checkpoint: "Checkpoint", layouts: Layouts, chip: "Chip", engine: "Parallelism"
) -> "Ints":
    """Bit mask of reasons why the engine could not load each layout, (n,); 0 where it can.

    Heads divide by TP and KV heads divide by TP or TP by them (then KV is replicated); widths divide; shards do not cut
    quantisation blocks (a block of 128 and an expert of width 1,536 exclude 8 ways); experts and tp x dp divide by EP;
    a dense model has no experts to spread; TP stays inside the scale-up domain; a replica is a share of a node that
    divides it, or whole nodes.
    """
    size = layouts.accelerators
    out = np.zeros(len(layouts), np.int64)
    for group in model.layers:
        out |= np.where(_attention_divides(group, layouts.tp), 0, int(Reason.HEADS))
        for width, ways, routed in _widths(group, layouts):
            out |= np.where(width % ways == 0, 0, int(Reason.WIDTH))
            if checkpoint.block and (routed or checkpoint.covers == "linear"):
                whole = (width // ways) % checkpoint.block == 0
                out |= np.where((ways == 1) | whole, 0, int(Reason.QUANT_BLOCK))
        if group.ffn.kind == "moe":
            out |= np.where(group.ffn.experts % layouts.ep == 0, 0, int(Reason.EXPERTS))
    spread = (layouts.tp * layouts.dp % layouts.ep == 0) & (model.sparse | (layouts.ep == 1))
    out |= np.where(spread, 0, int(Reason.EXPERTS))
    even = np.where(size <= chip.node, chip.node % np.minimum(size, chip.node) == 0, size % chip.node == 0)
    inside = layouts.tp <= min(chip.domain, max(chip.node, 8))
    out |= np.where(even & inside, 0, int(Reason.LINKS))
    refused = np.zeros(len(layouts), bool)
    if not engine.pipeline:
        refused |= layouts.pp > 1
    if not engine.expert:
        refused |= layouts.ep > 1
    if not engine.attention_data:
        refused |= layouts.dp > 1
    return out | np.where(refused, int(Reason.ENGINE), 0)
