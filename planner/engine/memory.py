"""What one accelerator holds: weights, KV cache, activations, engine reserve, adapters."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.engine.attention import WIDTH
from planner.engine.cache import sequence_bytes
from planner.engine.chip import ACTIVATION_BYTES, BITS
from planner.engine.counts import stage_share, weight_bytes
from planner.engine.matrices import ffn_matrices, matrices

if TYPE_CHECKING:
    from planner.engine.layouts import Layouts
    from planner.engine.step import Machine
    from planner.numeric import Floats, Ints
    from planner.spec.engine import EngineVersion
    from planner.spec.model import Checkpoint, ModelCard

LOGIT_BYTES = 4.0
"""Logits are sampled as 32-bit floats."""
ADAPTED = {"query", "key", "value", "output", "query_down", "query_up", "kv_down", "kv_up"}
"""Matrices around attention that take an adapter."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one accelerator by purpose [B]; columns of shape (n,)."""

    weights: "Floats"
    activations: "Floats"
    reserve: "Floats"
    """What the engine never uses, plus runtime, communicators and graphs."""
    adapters: "Floats"
    capacity: "Floats"
    """What the driver reports."""

    @property
    def kv(self) -> "Floats":
        """What is left for the KV cache; at least 0."""
        return np.maximum(0.0, self.capacity - self.weights - self.activations - self.reserve - self.adapters)


def activation_bytes(model: "ModelCard", layouts: "Layouts", budget: "Ints", batch: "Ints") -> "Floats":
    """Peak of transient tensors in a step of ``budget`` tokens with ``batch`` sampled rows, (n,) [B].

    The residual and its copy, the projections of the widest layer at once, and the logits: what an engine's profiling
    run measures at start-up.
    """
    widest = np.zeros(len(layouts))
    for group in model.layers:
        ffn = group.ffn
        if ffn.kind == "dense":
            inner = 3.0 * ffn.intermediate / layouts.tp
        else:
            inner = ffn.top_k * (3.0 * ffn.intermediate / layouts.expert_tp + model.hidden) / np.sqrt(layouts.ep)
        widest = np.maximum(widest, inner)
    hidden = budget * ACTIVATION_BYTES * (4.0 * model.hidden + widest)
    return hidden + batch * (LOGIT_BYTES + ACTIVATION_BYTES) * model.vocabulary / layouts.tp


def memory(
    m: "Machine",
    checkpoint: "Checkpoint",
    engine: "EngineVersion",
    budget: "Ints",
    batch: "Ints",
    adapters: "Floats",
    row: "Ints | None" = None,
) -> Memory:
    """Account for the memory of each candidate; all columns (n,), ``row`` (n,) being its layout in the machine.

    Without ``row`` there is one candidate for each layout.

    An engine takes a share of the usable memory for everything, or a share of what weights and activations leave for
    the cache alone; its activations come out of that share or out of the rest.
    """
    chip, reserve = m.chip, engine.reserve
    chosen = np.arange(len(m.layouts)) if row is None else row
    layouts = m.layouts.rows(chosen)
    fixed = np.where(layouts.accelerators > 1, reserve.fixed_parallel, reserve.fixed)
    weights = weight_bytes(m.model, chip.weights, checkpoint, m.layouts)[chosen]
    activations = activation_bytes(m.model, layouts, budget, batch)
    if reserve.fraction_of == "free":
        free = np.maximum(chip.usable - weights - activations - fixed - adapters, 0.0)
        kept = fixed + (1.0 - reserve.fraction) * free
    elif reserve.activations == "outside":
        kept = np.maximum((1.0 - reserve.fraction) * chip.usable - activations, fixed)
    else:
        kept = (1.0 - reserve.fraction) * chip.usable + fixed
    return Memory(weights, activations, kept, adapters, np.full(len(layouts), chip.usable))


def kv_per_sequence(m: "Machine", context: "Floats", block: int) -> "Floats":
    """Cache and state of one sequence on one accelerator of its rank, block-rounded, (n, k) [B] for contexts (k,).

    With pipeline stages: on the fullest one.
    """
    bits = int(8 * WIDTH[m.chip.kv])
    tokens = np.rint(np.atleast_1d(context)).astype(np.int64)
    held = sequence_bytes(m.model, tokens[np.newaxis, :], bits, m.layouts.tp[:, np.newaxis], block)
    return np.asarray(held, float) * stage_share(m.model, m.layouts)[:, np.newaxis]


def adapter_parameters(model: "ModelCard", rank: int, targets: str) -> float:
    """Parameters of one LoRA adapter: r (h_in + h_out) for each adapted matrix (S-LoRA, arXiv:2311.03285, section 2).

    Adapted are the matrices around attention (not an index, gates and decays of linear attention), or those and the
    dense feed-forward matrices; routed and shared experts are not.
    """
    total = 0.0
    for group in model.layers:
        parts = [one for one in matrices(group.attention, model.hidden) if one.name in ADAPTED]
        if targets == "all" and group.ffn.kind == "dense":
            parts += ffn_matrices(group.ffn, model.hidden)
        total += group.count * rank * sum(one.rows + one.columns for one in parts)
    return total


def adapter_bytes(model: "ModelCard", rank: int, targets: str) -> float:
    """Bytes of one adapter in 16 bits.

    LLaMA-70B, rank 16, all seven projections: 414.2 MB (S-LoRA's form on the published shape).
    """
    return adapter_parameters(model, rank, targets) * BITS["bf16"] / 8.0
