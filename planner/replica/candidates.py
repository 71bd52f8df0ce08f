"""Candidate replicas of one model on one kind of accelerator: layouts x token budgets x batch limits, judged for one role."""

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np

from planner.engine import layouts as lay
from planner.engine.memory import Memory, kv_per_sequence, memory
from planner.engine.counts import weight_bytes
from planner.engine.reasons import Reason
from planner.engine.step import Machine, machine
from planner.replica.adapters import adapted, resident_bytes
from planner.replica.batching import Operating, Tables, operating, tables
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
LIMITS = (16, 32, 64, 128, 256, 512, 1024)
"""Batch limits that are tried beside the engine's default."""
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
    return machine(subject.model, subject.chip.weights, subject.checkpoint, layouts, subject.chip, parallel)


def axes(engine: "EngineVersion", role: Role) -> list[tuple[int, int]]:
    """(Token budget, batch limit) pairs to try for a role, in a fixed order; the version's defaults come first."""
    budget, limit = engine.scheduling.token_budget, engine.scheduling.max_batch
    budgets = [budget, *(one for one in BUDGETS if one != budget)]
    limits = [limit, *(one for one in LIMITS if one < limit)]
    if role == "prefill":
        limits = [LIMITS[0]]
    if role == "decode":
        budgets = [BUDGETS[0]]
    mixed = role == "mixed" and engine.scheduling.steps == "mixed"
    return [(tokens, batch) for tokens, batch in product(budgets, limits) if not mixed or batch < tokens]


def _cache(
    subject: Subject, m: Machine, rows: "tuple[Ints, Ints, Ints]", adapters: "Floats"
) -> "tuple[Memory, Floats, Floats]":
    """Memory, sequences that fit, and bytes of the longest request, per candidate (row, budget, limit).

    With mean mu and standard deviation sigma of a sequence's bytes, b sequences fit where mu b + 2 sigma sqrt(b) does.
    """
    row, budget, limit = rows
    traffic, engine = subject.traffic, subject.engine
    held = memory(m, subject.checkpoint, engine, budget, limit, adapters, row)
    if engine.scheduling.admission == "reserve":
        most = max(float(work.output.maximum) for work in traffic.workloads)
        value, share = traffic.input.value + most, traffic.input.share
    else:
        contexts = traffic.contexts()
        value, share = contexts.value, contexts.share
    each = kv_per_sequence(m, np.append(value, traffic.longest), engine.caching.block)
    each, longest = each[:, :-1], each[row, -1]
    mean = each @ share
    spread = (SIGMAS * np.sqrt(np.maximum((each**2) @ share - mean**2, 0.0)))[row]
    mean = mean[row]
    root = (np.sqrt(spread**2 + 4.0 * mean * held.kv) - spread) / (2.0 * mean)
    return held, root**2 * m.layouts.dp[row], longest


def _adapters(subject: Subject, m: Machine, limit: "Ints", row: "Ints") -> "tuple[Adapted | None, Floats]":
    if subject.adapters is None:
        return None, np.zeros(len(limit))
    spec = adapted(m, subject.adapters)
    return spec, resident_bytes(spec, limit) / m.layouts.tp[row]


def evaluate(subject: Subject, role: Role, largest: int = lay.LARGEST) -> Replicas:
    """Judge all candidates of a role at once; none is dropped, each keeps its reasons."""
    table = lay.candidates(subject.model, largest)
    pairs = axes(subject.engine, role)
    legal = lay.legality(subject.model, subject.checkpoint, table, subject.chip, subject.engine.parallelism)
    legal |= np.where(_wide(subject, table, legal), int(Reason.DOMINATED), 0)
    # What is out already need not be timed: one candidate of each such layout keeps the reason.
    rows = [(index, *pair) for index in range(len(table)) for pair in (pairs if legal[index] == 0 else pairs[:1])]
    row, budget, limit = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return judge(subject, role, table, (row, budget, limit), legal)


def _wide(subject: Subject, table: lay.Layouts, legal: "Ints") -> "Bools":
    """Layouts of more than :data:`WIDEST` times the accelerators of the smallest legal one that holds the weights, (n,).

    Overheads and collectives do not shrink with more accelerators, so such a replica only serves fewer requests on each.
    """
    held = weight_bytes(subject.model, subject.chip.weights, subject.checkpoint, table)
    room = subject.engine.reserve.fraction * subject.chip.usable
    fits = (legal == 0) & (held < room)
    smallest = int(table.accelerators[fits].min()) if fits.any() else lay.LARGEST
    return table.accelerators > WIDEST * smallest


def judge(subject: Subject, role: Role, table: lay.Layouts, rows: "tuple[Ints, Ints, Ints]", legal: "Ints") -> Replicas:
    """Judge given candidates: (row of ``table``, token budget, batch limit), with each layout's reasons ``legal``."""
    row, budget, limit = rows
    traffic, engine = subject.traffic, subject.engine
    m = single(subject, table)
    spec, resident = _adapters(subject, m, limit, row)
    passes = tabulate(m, traffic.contexts(), spec)
    held, fits, longest = _cache(subject, m, rows, resident)
    rejected = legal[row] | np.where(longest > held.kv, int(Reason.MEMORY), 0)
    usable = rejected == 0
    fits = np.where(usable, fits, 1.0)
    cap = np.minimum(fits, limit * table.dp[row])
    mixed = role == "mixed" and engine.scheduling.steps == "mixed"
    if mixed:
        cap = np.minimum(cap, (budget - 1.0) * table.dp[row])
    key = row * (1 + int(budget.max())) + (budget if role != "decode" else 0)
    _, first, pair = np.unique(key, return_index=True, return_inverse=True)
    shared = row[first], budget[first]
    work = None if role == "decode" else prefill(passes, *shared, traffic, mixed=mixed)
    table_of = tables(passes, shared[0], work, traffic.steps if role != "prefill" else 0.0)
    point = operating(table_of, pair, np.minimum(cap, BATCHES[-1]))
    return Replicas(subject, role, m, passes, row, budget, limit, held, fits, rejected, pair, work, table_of, point)
