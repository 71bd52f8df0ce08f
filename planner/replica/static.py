"""One batch that starts together and ends together: what single-step benchmarks measure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.step import column, head, prefill_attention
from planner.numeric import interpolate_rows
from planner.replica.passes import BATCHES

if TYPE_CHECKING:
    from planner.numeric import Floats, Ints
    from planner.replica.passes import Passes


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """Times of one batch; (n,) columns."""

    prefill: "Floats"
    """From the start to the first token of all, without what handles a request outside the engine [s]."""
    step: "Floats"
    """Mean decode step while the contexts grow [s]."""

    def whole(self, output: float) -> "Floats":
        """Time to ``output`` tokens of each sequence [s]."""
        return self.prefill + max(output - 1.0, 0.0) * self.step


def static(passes: "Passes", row: "Ints", batch: "Floats", tokens: float, budget: "Ints") -> Static:
    """Time a batch of ``batch`` (n,) prompts of ``tokens`` on the layouts ``row`` (n,).

    The prompts of a rank share prefill steps of at most ``budget`` (n,) tokens; a step decodes for all ranks at once.
    """
    m = passes.machine
    ranks = m.layouts.dp[row].astype(float)
    share = np.maximum(np.ceil(batch / ranks), 1.0)
    steps = np.ceil(share * tokens / budget)
    linear = steps * passes.linear(row, (share * tokens / steps)[:, np.newaxis])[:, 0]
    length = np.full(1, tokens)
    chunk = column(np.minimum(budget, tokens))
    attention = prefill_attention(m, np.zeros(1), length, chunk, row)
    # Prompts of one step share its kernels; the work of each adds up.
    kernels = np.broadcast_to(attention.overhead, attention.total.shape)[:, 0]
    work = (attention.total[:, 0] - kernels) * share + kernels * np.maximum(steps / np.ceil(tokens / budget), 1.0)
    places = np.arange(len(row))
    top = np.broadcast_to(head(m, share[np.newaxis]).total, (len(m.layouts), len(row)))[row, places]
    decode = interpolate_rows(BATCHES, passes.decode[row], batch)
    return Static(linear + work + top, decode)
