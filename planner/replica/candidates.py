"""Candidate replicas of one model on one kind of accelerator: layouts x token budgets x batch limits, for one role."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from planner.engine import layouts as lay
from planner.engine.counts import stage_share, weight_bytes
from planner.engine.memory import Memory, kv_per_sequence, memory
from planner.engine.reasons import Reason
from planner.engine.step import Machine, machine
from planner.replica.adapters import adapted, resident_bytes
from planner.replica.batching import Operating, Tables, operating, slowest_batch, tables
from planner.replica.passes import BATCHES, Passes, tabulate
from planner.replica.prefill import Prefill, prefill

if TYPE_CHECKING:
    from planner.engine.chip import Chip
    from planner.numeric import Bools, Floats, Ints
    from planner.replica.adapters import Adapted
    from planner.spec.engine import EngineVersion
    from planner.spec.model import Checkpoint, ModelCard
    from planner.spec.scenario import Adapters
    from planner.workload.blend import Blend

Role = Literal["mixed", "prefill", "decode"]
BUDGETS = (512, 1024, 2048, 4096, 8192, 16384)
"""Token budgets that are tried beside the engine's default."""
LIMITS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Batch limits that are tried beside the engine's default."""
BELOW = (1.0, 0.8)
"""Batch limits, over the batch at which mean TPOT meets the promise."""
WIDEST = 16
"""Accelerators of the widest replica that is tried, over those of the smallest that holds the weights."""
SIGMAS = 2.0
"""Standard deviations of the cached tokens that optimistic admission leaves free, so that recomputing stays rare."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What is served, on what: the cards of one evaluation."""

    model: "ModelCard"
    checkpoint: "Checkpoint"
    chip: "Chip"
    engine: "EngineVersion"
    traffic: "Blend"
    adapters: "Adapters | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class Replicas:
    """Candidates of one role; (n,) columns."""

    subject: Subject
    role: Role
    machine: Machine
    passes: Passes
    row: "Ints"
    """Row of the layout in ``machine``."""
    budget: "Ints"
    """Most tokens of a step of one rank."""
    limit: "Ints"
    """Most sequences that one rank decodes together."""
    memory: Memory
    """Of one accelerator."""
    fits: "Floats"
    """Sequences whose cache fits in the replica."""
    rejected: "Ints"
    """Bit mask of reasons."""
    pair: "Ints"
    """Row of (layout, budget) in ``work`` and ``tables``."""
    work: Prefill | None
    tables: Tables
    operating: Operating

    def __len__(self) -> int:
        """Candidates."""
        return len(self.row)

    def with_rejected(self, rejected: "Ints") -> "Replicas":
        """Return the same candidates with other reasons."""
        return replace(self, rejected=rejected)

    @property
    def size(self) -> "Ints":
        """Accelerators of one replica."""
        return self.machine.layouts.accelerators[self.row]

    @property
    def stages(self) -> "Floats":
        """Pipeline stages."""
        return self.machine.layouts.pp[self.row].astype(float)


def single(subject: Subject, layouts: lay.Layouts) -> Machine:
    """Count the operators of a subject in given layouts."""
    parallel = subject.engine.parallelism
    graphs = subject.engine.scheduling.graph_batch
    return machine(subject.model, subject.chip.weights, subject.checkpoint, layouts, subject.chip, parallel, graphs)


def axes(engine: "EngineVersion", role: Role) -> tuple[list[int], list[int]]:
    """Token budgets and batch limits to try for a role, in a fixed order; the version's defaults come first."""
    budget, limit = engine.scheduling.token_budget, engine.scheduling.max_batch
    budgets = [budget, *(one for one in BUDGETS if one != budget)]
    limits = [limit, *(one for one in LIMITS if one < limit)]
    if role == "prefill":
        limits = [LIMITS[0]]
    if role == "decode":
        budgets = [BUDGETS[0]]
    return budgets, limits


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """What all roles of a subject share: layouts, step times, and the cache of a sequence; (l,) columns."""

    subject: Subject
    machine: Machine
    passes: Passes
    adapters: "Adapted | None"
    legal: "Ints"
    """Reasons against each layout."""
    mean: "Floats"
    """Cache of a running sequence, on one accelerator [B]."""
    spread: "Floats"
    """Standard deviation of it [B]."""
    longest: "Floats"
    """Cache of the longest request [B]."""


def bench(subject: Subject, table: lay.Layouts, legal: "Ints") -> Bench:
    """Count and time the layouts of ``table`` once for all roles."""
    m, traffic, engine = single(subject, table), subject.traffic, subject.engine
    contexts = traffic.contexts()
    spec = None if subject.adapters is None else adapted(m, subject.adapters)
    value, share = contexts.value, contexts.share
    if engine.scheduling.admission == "reserve":
        value = traffic.input.value + max(float(work.output.maximum) for work in traffic.workloads)
        share = traffic.input.share
    each = kv_per_sequence(m, np.append(value, traffic.longest), engine.caching.block)
    mean = each[:, :-1] @ share
    spread = np.sqrt(np.maximum((each[:, :-1] ** 2) @ share - mean**2, 0.0))
    return Bench(subject, m, tabulate(m, contexts, spec), spec, legal, mean, spread, each[:, -1])


@lru_cache(maxsize=64)
def prepare(subject: Subject, largest: int = lay.LARGEST) -> Bench:
    """Lay out a subject in every way worth judging; the roles of one subject share what comes of it."""
    table = lay.candidates(subject.model, largest)
    legal = lay.legality(subject.model, subject.checkpoint, table, subject.chip, subject.engine.parallelism)
    return bench(subject, table, legal | np.where(_wide(subject, table, legal), int(Reason.DOMINATED), 0))


def _wide(subject: Subject, table: lay.Layouts, legal: "Ints") -> "Bools":
    """Tell which layouts have over :data:`WIDEST` times the accelerators of the smallest that holds the weights, (n,).

    Overheads and collectives do not shrink with more accelerators, so such a replica only serves fewer requests on
    each.
    """
    held = weight_bytes(subject.model, subject.chip.weights, subject.checkpoint, table)
    room = subject.engine.reserve.fraction * subject.chip.usable
    fits = (legal == 0) & (held < room)
    smallest = int(table.accelerators[fits].min()) if fits.any() else lay.LARGEST
    return table.accelerators > WIDEST * smallest


def evaluate(subject: Subject, role: Role, largest: int = lay.LARGEST) -> Replicas:
    """Judge all candidates of a role at once; none is dropped, each keeps its reasons."""
    return candidates(prepare(subject, largest), role)


def candidates(of: Bench, role: Role) -> Replicas:
    """Judge all candidates of a role on a bench.

    Beside the limits of :func:`axes`, each layout and budget is tried with the batch at which its mean TPOT meets the
    promise, and somewhat below: a limit that fits no grid. What is out already need not be timed: one candidate of each
    such layout keeps the reason.
    """
    subject, out = of.subject, of.legal != 0
    budgets, limits = (np.array(axis, np.int64) for axis in axes(subject.engine, role))
    row = np.concatenate([np.repeat(np.flatnonzero(~out), len(budgets)), np.flatnonzero(out)])
    budget = np.concatenate([np.tile(budgets, np.count_nonzero(~out)), np.full(np.count_nonzero(out), budgets[0])])
    order = np.argsort(row, kind="stable")
    row, budget = row[order], budget[order]
    pairs = _pairs(of, role, row, budget)
    tried = np.tile(limits, (len(row), 1))
    promised = [work.tpot for work in subject.traffic.workloads if work.tpot is not None]
    if promised and role != "prefill":
        most = np.minimum(slowest_batch(pairs.tables, min(promised)) / of.machine.layouts.dp[row], limits[0])
        own = np.maximum(most[:, np.newaxis] * np.array(BELOW), 1.0).astype(np.int64)
        tried = np.concatenate([tried, own], axis=1)
    counts = np.where(out[row], 1, tried.shape[1])
    pair = np.repeat(np.arange(len(row)), counts)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    return _judge(of, role, (row[pair], budget[pair], tried[pair, place]), pair, pairs)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Tables of (layout, budget) pairs."""

    work: "Prefill | None"
    tables: Tables


def _pairs(of: Bench, role: Role, row: "Ints", budget: "Ints") -> _Pairs:
    traffic = of.subject.traffic
    mixed = role == "mixed" and of.subject.engine.scheduling.steps == "mixed"
    work = None if role == "decode" else prefill(of.passes, row, budget, traffic, mixed=mixed)
    return _Pairs(work, tables(of.passes, row, work, traffic.steps if role != "prefill" else 0.0))


def judge(of: Bench, role: Role, rows: "tuple[Ints, Ints, Ints]") -> Replicas:
    """Judge given candidates: (layout of the bench, token budget, batch limit)."""
    row, budget, _ = rows
    key = row * (1 + int(budget.max())) + (budget if role != "decode" else 0)
    _, first, pair = np.unique(key, return_index=True, return_inverse=True)
    return _judge(of, role, rows, pair, _pairs(of, role, row[first], budget[first]))


def _judge(of: Bench, role: Role, rows: "tuple[Ints, Ints, Ints]", pair: "Ints", pairs: _Pairs) -> Replicas:
    """Judge candidates (layout, budget, limit), each with its row ``pair`` of ``pairs``."""
    row, budget, limit = rows
    subject, m = of.subject, of.machine
    engine = subject.engine
    ranks = m.layouts.dp[row]
    resident = np.zeros(len(row))
    if of.adapters is not None:
        # Each stage holds the adapters of its own layers.
        resident = resident_bytes(of.adapters, limit) / m.layouts.tp[row] * stage_share(m.model, m.layouts)[row]
    held = memory(m, subject.checkpoint, engine, budget, limit, resident, row)
    rejected = of.legal[row] | np.where(of.longest[row] > held.kv, int(Reason.MEMORY), 0)
    # With mean mu and deviation sigma of a sequence's bytes, b sequences fit where mu b + 2 sigma sqrt(b) does.
    spread, mean = SIGMAS * of.spread[row], of.mean[row]
    root = (np.sqrt(spread**2 + 4.0 * mean * held.kv) - spread) / (2.0 * mean)
    fits = np.where(rejected == 0, root**2 * ranks, 1.0)
    cap = np.minimum(fits, limit * ranks)
    mixed = role == "mixed" and engine.scheduling.steps == "mixed"
    if mixed:
        cap = np.minimum(cap, (budget - 1.0) * ranks)
    point = operating(pairs.tables, pair, np.minimum(cap, BATCHES[-1]))
    return Replicas(
        subject, role, m, of.passes, row, budget, limit, held, fits, rejected, pair, pairs.work, pairs.tables, point
    )
