"""Prefill of one replica: how long a prompt takes, what it adds to the steps of others, how much work it queues.

``mixed`` steps (Agrawal et al., *Sarathi-Serve*, OSDI 2024): a prompt rides in ceil(P / c) decode steps, c being the
token budget less the decoding sequences, and adds to each only what the larger step costs more. ``separate`` steps
(and prefill pools): its own steps, during which nothing decodes.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.step import column, head, prefill_attention
from planner.replica.passes import BATCHES

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints
    from planner.replica.passes import Passes
    from planner.workload.blend import Blend


@dataclass(frozen=True, slots=True, eq=False)
class Prefill:
    """Prefill of every (layout, budget) row, over the grid of decode batches; g = len(BATCHES), k bins of input."""

    added: "Floats"
    """Time that one prompt adds to the steps of its rank, (n, g, k) [s]."""
    chunks: "Floats"
    """Steps that one prompt needs, (n, g, k)."""
    fills: "Floats"
    """Mean number of steps that a prompt fills: its tokens over what a step has for prompts, (n, g)."""
    shares: "Floats"
    """Share of each bin, (k,)."""
    lanes: "Floats"
    """Prompts that are prefilled at once: attention ranks times pipeline stages, (n,)."""
    added_mean: "Floats"
    """Mean of ``added``, (n, g) [s]."""
    added_second: "Floats"
    """Second moment of it, (n, g) [s^2]."""
    work_mean: "Floats"
    """Mean time that a prompt keeps later ones waiting, (n, g) [s]."""
    work_second: "Floats"
    """Second moment of it, (n, g) [s^2]."""

    row: "Ints"
    """Row of the tables for each row of ``lanes``, (n,): rows are chosen and repeated without copying tables."""

    def rows(self, index: "Ints") -> "Prefill":
        """Return the same tables with only the rows of ``index``."""
        return replace(self, row=self.row[index], lanes=self.lanes[index])


GRIDS = ("added", "chunks", "fills", "added_mean", "added_second", "work_mean", "work_second")
"""Tables of :class:`Prefill` over the grid of decode batches."""


def _table(added: "Floats", parts: "Floats", work: "Floats", shares: "Floats", lanes: "Floats") -> Prefill:
    """Join the arrays with their moments over the bins."""
    first, second = added @ shares, (added * added) @ shares
    return Prefill(
        added,
        np.ceil(parts),
        parts @ shares,
        shares,
        lanes,
        first,
        second,
        work @ shares,
        (work * work) @ shares,
        np.arange(len(lanes)),
    )


def prefill(passes: "Passes", row: "Ints", budget: "Ints", traffic: "Blend", *, mixed: bool) -> Prefill:
    """Evaluate prefill for rows (layout ``row``, token ``budget``), both (n,)."""
    m = passes.machine
    fresh = traffic.fresh
    n, g = len(row), len(BATCHES)
    lanes = (m.layouts.dp * m.layouts.pp)[row].astype(float)
    attention = prefill_attention(m, traffic.cached, fresh, column(budget), row).total
    rank = passes.rank_tokens[row]
    chunk = np.maximum(column(budget) - (rank if mixed else 0.0), 1.0)
    if mixed:
        full, rest, pieces = _ride(passes, row, rank, chunk, fresh)
        step = passes.decode[row] + full
        added = pieces * full[:, :, np.newaxis] + rest + attention[:, np.newaxis, :]
        # A short rest may add more than its share of a full chunk, and keeps later prompts waiting as long.
        work = np.maximum(fresh * (step / chunk)[:, :, np.newaxis] + attention[:, np.newaxis, :], added)
        return _table(added, fresh / chunk[:, :, np.newaxis], work, traffic.input.share, lanes)
    top = head(m, np.ones(1)).total[row]
    count = np.floor(fresh / column(budget))
    rest = fresh - count * column(budget)
    last = np.where(rest > 0, passes.linear(row, np.maximum(rest, 1.0)) + top, 0.0)
    own = count * (passes.linear(row, column(budget).astype(float)) + top) + last + attention
    # Nothing decodes meanwhile, so all batches of the grid have the same prefill.
    alone = _table(own, fresh / column(budget), own, traffic.input.share, lanes)
    grids = {name: getattr(alone, name)[:, np.newaxis] for name in GRIDS}
    return replace(alone, **{name: np.broadcast_to(at, (n, g, *at.shape[2:])) for name, at in grids.items()})


def _ride(
    passes: "Passes", row: "Ints", rank: "Floats", chunk: "Floats", fresh: "Floats"
) -> "tuple[Floats, Floats, Floats]":
    """Time that a full chunk adds to a decode step (n, g), that the rest adds (n, g, k), and full chunks (n, g, k)."""
    alone = passes.linear(row, rank)
    full = np.maximum(passes.linear(row, rank + chunk) - alone, 0.0)
    pieces = np.floor(fresh / chunk[:, :, np.newaxis])
    rest = fresh - pieces * chunk[:, :, np.newaxis]
    larger = passes.linear(row, rank[:, :, np.newaxis] + rest)
    return full, np.maximum(larger - alone[:, :, np.newaxis], 0.0), pieces


def latency(chunks: "Floats", step: "Floats", added: "Floats", stages: "Floats") -> "Floats":
    """Time from the first step of a prompt to its first token, any shape [s].

    Its chunks ride in as many steps of ``step`` seconds; with p stages, chunks follow each other a stage apart
    (Mooncake's chunked pipeline, Qin et al., FAST 2025: (C + p - 1) / p of C steps).
    """
    return (chunks * step + added) * (chunks + stages - 1.0) / (chunks * stages)
