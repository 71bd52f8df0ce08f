"""One pass of one replica: the roofline with efficiencies, kernel, collective and step overheads.

A step splits into what depends on its tokens alone (:func:`body`: linear layers, experts, collectives, overhead), the
output head (:func:`head`), and attention, which depends on contexts (:func:`decode_attention`,
:func:`prefill_attention`). Each operator takes

    max(flops / (e_c peak), bytes / (e_m bandwidth)) + kernel

(S. Williams, A. Waterman, D. Patterson, *Roofline*, CACM 2009, with achieved in place of peak rates) and its roofline
time is booked to the resource that binds. With all efficiencies 1 and no overhead this is the speed-of-light bound.

Tokens are counted per attention rank: a replica with dp ranks runs them in lock step, each with as many tokens as the
fullest (:func:`fullest`), and its experts see the tokens of all ranks.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.engine import collectives
from planner.engine.attention import causal_pairs, cost
from planner.engine.chip import ACTIVATION_BYTES
from planner.engine.counts import Linear, Routed, distinct_experts, operators

if TYPE_CHECKING:
    from planner.engine.attention import Cost
    from planner.engine.chip import Chip
    from planner.engine.layouts import Layouts
    from planner.numeric import Floats, Ints
    from planner.spec.engine import Parallelism
    from planner.spec.model import Checkpoint, ModelCard, NumberFormat


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Times of one operator over all its layers [s]; arrays that broadcast against each other."""

    name: str
    flop_time: "Floats"
    """What the arithmetic alone would take."""
    byte_time: "Floats"
    """What the memory traffic alone would take."""
    network: "Floats"
    overhead: "Floats"
    band: float
    """Half width of the relative 80 % band of this time."""

    @property
    def total(self) -> "Floats":
        """Arithmetic and memory overlap; the network and fixed costs do not."""
        return np.maximum(self.flop_time, self.byte_time) + self.network + self.overhead

    @property
    def compute(self) -> "Floats":
        """Time booked to arithmetic: all of the roofline where it binds, else none."""
        return np.where(self.flop_time > self.byte_time, self.flop_time, 0.0)

    @property
    def memory(self) -> "Floats":
        """Time booked to memory: all of the roofline where it binds, else none."""
        return np.where(self.flop_time > self.byte_time, 0.0, self.byte_time)


@dataclass(frozen=True, slots=True)
class Machine:
    """A model on a chip in every layout of a table: counts ready, so that passes only evaluate."""

    model: "ModelCard"
    chip: "Chip"
    layouts: "Layouts"
    linear: tuple[Linear, ...]
    routed: tuple[Routed, ...]
    head: Linear
    attention: "tuple[tuple[int, Cost], ...]"
    """(layers, cost of one layer) by layer group."""
    dispatch: str
    """How tokens reach experts on other ranks: ``all_gather`` or ``all_to_all``."""
    graphs: int
    """Most tokens of a step that a captured graph serves."""


def machine(
    model: "ModelCard",
    weights: "NumberFormat",
    checkpoint: "Checkpoint",
    layouts: "Layouts",
    chip: "Chip",
    engine: "Parallelism",
    graphs: int = 0,
) -> Machine:
    """Count all operators of ``model`` for every layout, legal or not; graphs hold steps of up to ``graphs`` tokens."""
    linear, routed, top = operators(model, weights, checkpoint, layouts)
    attention = tuple((group.count, cost(group.attention, layouts.tp, chip.kv)) for group in model.layers)
    return Machine(model, chip, layouts, linear, routed, top, attention, engine.dispatch, graphs)


def column(values: "Floats | Ints") -> "Floats":
    """Turn (n,) into (n, 1), to meet a grid on the second axis."""
    return np.asarray(values, float)[:, np.newaxis]


def fullest(tokens: "Floats", ranks: "Floats") -> "Floats":
    r"""Tokens (or sequences) of the fullest of ``ranks`` ranks that share ``tokens`` at random.

    .. math:: m / r + \sqrt{2 \ln r \; m / r}, \quad \text{at least 1, at most } m

    The mean of the largest of r normal variables with mean and variance m / r is at most that (e.g. Boucheron, Lugosi,
    Massart, *Concentration Inequalities*, 2013, theorem 2.5).

    >>> fullest(np.array([64.0]), np.array([1.0])), fullest(np.array([64.0]), np.array([8.0])).round(2)
    (array([64.]), array([13.77]))
    """
    mean = tokens / ranks
    # One token is on one rank, however many ranks there are.
    return np.minimum(np.maximum(mean + np.sqrt(2.0 * np.log(ranks) * mean), 1.0), tokens)


def _linear_time(op: Linear, chip: "Chip", tokens: "Floats") -> OperatorTime:
    fit, peak = (chip.half, chip.half_peak) if op.wide else (chip.gemm, chip.peak)
    flops = column(op.flops * op.layers / (peak * fit.compute)) * tokens
    byte_rate = op.layers / (chip.bandwidth * fit.memory)
    moved = column(op.weight * byte_rate) + column(op.traffic * byte_rate) * tokens
    return OperatorTime(op.name, flops, moved, np.zeros(1), np.full(1, op.layers * fit.kernel), fit.band)


def _routed_time(op: Routed, chip: "Chip", layouts: "Layouts", tokens: "Floats") -> OperatorTime:
    """Routed experts. Weights are read for the experts that any token visits, never for top-k alone.

    The rows of each expert are padded to whole tiles: (tile - 1) / 2 rows more on average, and at least one tile.
    """
    fit = chip.experts
    ep, everyone = column(layouts.ep), column(layouts.dp) * tokens
    touched = distinct_experts(float(op.experts), float(op.top_k), everyone) / ep
    skew = np.where(ep > 1, chip.imbalance.experts, 1.0)
    rows = everyone * op.top_k / ep * skew
    padded = np.maximum(touched * fit.tile, rows + touched * ((fit.tile - 1.0) / 2.0))
    activations = op.layers * rows * column(op.traffic) / (fit.activation * chip.bandwidth)
    flops = op.layers * padded * column(op.row_flops) / (fit.compute * chip.experts_peak)
    weights = op.layers * touched * column(op.weight) / (fit.memory * chip.bandwidth)
    fixed = op.layers * (fit.kernel + fit.per_expert * column(op.local))
    return OperatorTime(op.name, flops + activations, weights + activations, np.zeros(1), fixed, fit.band)


def _expert_traffic(m: Machine, tokens: "Floats") -> "Floats":
    """Dispatch and combine of one MoE layer with data-parallel attention [s], (n, g); 0 without."""
    chip, layouts = m.chip, m.layouts
    dp, size = column(layouts.dp), column(layouts.tp * layouts.dp)
    top_k = max((float(op.top_k) for op in m.routed), default=0.0)
    vector = ACTIVATION_BYTES * m.model.hidden
    if m.dispatch == "all_to_all":
        message = tokens * vector * np.minimum(top_k, size)
        inside = 2.0 * collectives.exchange(message, size, chip.collectives.all_to_all)
        sent = message
    else:
        message = tokens * dp * vector
        inside = collectives.exchange(message, dp, chip.collectives.all_gather)
        inside = inside + collectives.exchange(message, dp, chip.collectives.reduce_scatter)
        sent = message / column(layouts.tp)
    remote = np.maximum(0.0, 1.0 - chip.domain / size)
    outside = np.where(remote > 0, 2.0 * collectives.across(sent * remote, chip), 0.0)
    return np.where(dp > 1, inside + outside, 0.0)


def _network(m: Machine, tokens: "Floats") -> OperatorTime:
    """Time the collectives of one pass: all-reduces over TP, expert traffic over EP, hand-over between stages."""
    chip, layouts, model = m.chip, m.layouts, m.model
    message = ACTIVATION_BYTES * model.hidden * tokens
    one = collectives.all_reduce(message, column(layouts.tp), chip.collectives.all_reduce)
    sparse = sum(op.layers for op in m.routed)
    spread = column(layouts.dp) > 1
    per_layer = 1 if model.parallel_block else 2
    reduced = per_layer * model.depth + 1 - np.where(spread, sparse, 0)
    time = reduced * one
    if sparse:
        time = time + sparse * _expert_traffic(m, tokens)
    stages, inside = column(layouts.pp), column(layouts.accelerators) <= chip.domain
    ring = chip.collectives.all_gather
    latency, bandwidth = collectives.by_group(ring.ring, column(np.full(len(layouts), 2)))
    hop = np.where(inside, latency + message / bandwidth, collectives.across(message / column(layouts.tp), chip))
    none = np.zeros(1)
    return OperatorTime("collectives", none, none, time + (stages - 1.0) * hop, none, chip.collectives.all_reduce.band)


def body(m: Machine, tokens: "Floats") -> tuple[OperatorTime, ...]:
    """Everything of a pass that depends on its tokens alone, per operator.

    Parameters
    ----------
    m
        Machine of n layouts.
    tokens : (g,) or (n, g)
        Tokens of one attention rank in one micro-batch.

    Returns
    -------
    tuple
        Operators whose arrays broadcast to (n, g). With pipeline stages: the latency of a micro-batch through all of
        them.

    """
    times = [_linear_time(op, m.chip, tokens) for op in m.linear]
    times += [_routed_time(op, m.chip, m.layouts, tokens) for op in m.routed]
    times.append(_network(m, tokens))
    fixed = m.model.depth * m.chip.overhead.per_layer + m.chip.overhead.per_step
    none = np.zeros(1)
    times.append(OperatorTime("engine overhead", none, none, none, np.full(1, fixed), m.chip.overhead.band))
    # The host launches while the accelerator works, so only what it is late adds.
    host = np.where(tokens > m.graphs, m.model.depth * m.chip.overhead.per_layer_host, 0.0)
    late = np.maximum(host - total(tuple(times[:-1])), 0.0)
    times.append(OperatorTime("kernel launches", none, none, none, late, m.chip.overhead.band))
    return tuple(times)


def head(m: Machine, rows: "Floats") -> OperatorTime:
    """Output head and sampling for ``rows`` sequences of one rank, (n, g) or broadcastable."""
    time = _linear_time(m.head, m.chip, rows)
    return replace(time, overhead=time.overhead + m.chip.overhead.per_sequence * rows)


def decode_attention(m: Machine, batch: "Floats", contexts: "tuple[Floats, Floats]") -> OperatorTime:
    """Attention of one decode step.

    Parameters
    ----------
    m
        Machine of n layouts.
    batch : (n, g)
        Sequences of the fullest rank in one micro-batch.
    contexts
        Context lengths (k,) of running sequences and their shares (k,): a window caps each, not their mean.

    """
    chip, fit = m.chip, m.chip.decode_attention
    values, shares = contexts
    mean = float(values @ shares)
    flop, moved, kernels = np.zeros(1), np.zeros(1), 0.0
    # The card has no compute share of decode attention: that of prefill stands in.
    for layers, one in m.attention:
        seen = float(np.minimum(values, one.window) @ shares)
        sequence = seen * one.token_bytes + mean * one.index_bytes + one.sequence_bytes
        spread = column(fit.spread / one.local_heads) * np.ones_like(batch)
        moved = moved + layers * column(sequence) * (batch + np.minimum(spread, spread * batch))
        flop = flop + layers * column(seen * one.decode_flops + mean * one.index_flops + one.token_flops) * batch
        kernels += layers * fit.kernel
    busy = np.where(batch > 0, 1.0, 0.0)
    peak = chip.attention_peak * chip.prefill_attention.compute
    rate = fit.memory * chip.bandwidth
    return OperatorTime("decode attention", flop / peak, moved / rate, np.zeros(1), kernels * busy, fit.band)


def prefill_attention(
    m: Machine, start: "Floats", tokens: "Floats", chunk: "Floats", row: "Ints | None" = None
) -> OperatorTime:
    """Attention of one prompt: ``tokens`` new ones behind ``start`` cached ones, in chunks of at most ``chunk``.

    Arrays (k,) or (n, k); ``row`` (n,) chooses layouts of the machine, all of them in order where absent. Each chunk
    reads the cache of all tokens before it (Agrawal et al., *Sarathi-Serve*, OSDI 2024, section 4: N (N - 1) / 2
    chunks re-read), and its own; where a window caps what a query sees, the window before it and its own.

    Arithmetic and memory traffic add up, as on the efficiency card; the sum is booked to arithmetic.
    """
    chip, fit = m.chip, m.chip.prefill_attention
    chunks = np.ceil(np.maximum(tokens, 1.0) / chunk)
    length = np.minimum(tokens, chunk)
    reach = fit.compute * chip.attention_peak * length / (length + fit.half_length)
    flop, moved, kernels = np.zeros(1), np.zeros(1), 0.0
    history = chunks * start + tokens * (chunks + 1.0) / 2.0
    chosen = slice(None) if row is None else row
    for layers, one in m.attention:
        pairs = causal_pairs(start, tokens, one.window)
        scored = one.index_flops * causal_pairs(start, tokens, np.inf)
        own = column(one.pair_flops[chosen]) * pairs + column(one.token_flops[chosen]) * tokens
        flop = flop + layers * (own + scored)
        read = column(one.token_bytes[chosen]) * np.minimum(history, chunks * one.window + tokens)
        moved = moved + layers * (read + one.index_bytes * history)
        kernels += layers * fit.kernel
    moved_time = moved / (fit.memory * chip.bandwidth)
    arithmetic = flop / reach + moved_time
    return OperatorTime("prefill attention", arithmetic, moved_time, np.zeros(1), kernels * chunks, fit.band)


def total(operators_: tuple[OperatorTime, ...]) -> "Floats":
    """Sum of all operators [s], in their order, so that a column equals a loop over its rows."""
    out = operators_[0].total
    for operator in operators_[1:]:
        out = out + operator.total
    return out


def band(operators_: tuple[OperatorTime, ...]) -> "Floats":
    """Relative half width of the 80 % band of the sum: those of its parts by time, as if they erred together."""
    weighted = operators_[0].band * operators_[0].total
    for operator in operators_[1:]:
        weighted = weighted + operator.band * operator.total
    return weighted / total(operators_)
