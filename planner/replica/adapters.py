"""LoRA adapters on one base model: their memory, their bytes in a step, their arithmetic."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.memory import adapter_bytes, adapter_parameters
from planner.engine.step import OperatorTime, column

if TYPE_CHECKING:
    from planner.engine.step import Machine
    from planner.numeric import Floats, Ints
    from planner.spec.scenario import Adapters

KERNELS = 8.0
"""Launches in an adapted layer: a shrink and an expand for each of qkv, o, gate-up and down (Punica,
arXiv:2310.18547)."""


@dataclass(frozen=True, slots=True, eq=False)
class Adapted:
    """Adapters of one workload."""

    spec: "Adapters"
    size: float
    """Bytes of one adapter, on all accelerators of a rank together [B]."""
    flops: float
    """FLOPs of one token [FLOP]."""
    popularity: "Floats"
    """Share of requests of each adapter, most popular first, (count,)."""

    def distinct(self, batch: "Floats") -> "Floats":
        """Return the expected number of different adapters among ``batch`` sequences, any shape.

        Sum over adapters of 1 - (1 - p)^b.
        """
        sizes, place = np.unique(np.asarray(batch, float), return_inverse=True)
        misses = np.exp(sizes[:, np.newaxis] * np.log1p(-np.minimum(self.popularity, 1 - 1e-12)))
        found: Floats = (len(self.popularity) - misses.sum(axis=1))[place].reshape(np.shape(batch))
        return found

    def reading(self, m: "Machine", batch: "Floats") -> "Floats":
        """Time to read the adapters of ``batch`` (n, g) sequences in a step [s]."""
        rate = m.chip.decode_attention.memory * m.chip.bandwidth * column(m.layouts.tp)
        return self.distinct(batch) * self.size / rate

    def operators(self, m: "Machine", tokens: "Floats", batch: "Floats") -> tuple[OperatorTime, ...]:
        """Adapters' part of a step of ``tokens`` (n, g) tokens and ``batch`` sequences."""
        fit = m.chip.half
        flop = self.flops * tokens / (column(m.layouts.tp) * m.chip.half_peak * fit.compute)
        fixed = np.full(1, KERNELS * m.model.depth * fit.kernel / 2.0)
        return (OperatorTime("adapters", flop, self.reading(m, batch), np.zeros(1), fixed, fit.band),)


def adapted(m: "Machine", spec: "Adapters") -> Adapted:
    """Count the adapters of a workload (S-LoRA, arXiv:2311.03285: 2 r (h_in + h_out) FLOPs per token and matrix)."""
    weight = np.arange(1, spec.count + 1, dtype=float) ** -spec.popularity
    parameters = adapter_parameters(m.model, spec.rank, spec.targets)
    return Adapted(spec, adapter_bytes(m.model, spec.rank, spec.targets), 2.0 * parameters, weight / weight.sum())


def resident_bytes(work: Adapted, batch: "Ints") -> "Floats":
    """Memory of the adapters that a full ``batch`` (n,) uses at once, on a rank [B]; others wait in host memory."""
    return work.distinct(batch.astype(float)) * work.size
