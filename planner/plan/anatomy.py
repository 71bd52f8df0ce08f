"""One pass of a pool's replica, operator by operator, and the memory of one of its accelerators."""

from collections.abc import Iterable

import numpy as np

from planner.engine.reasons import Reason
from planner.engine.step import Machine, body, head, prefill_attention
from planner.engine.step import OperatorTime as Times
from planner.numeric import Floats
from planner.plan.describe import layout_of
from planner.plan.explanation import AcceleratorMemory, ExplainedPool, OperatorTime, Pass
from planner.plan.offers import PoolChoice
from planner.replica.adapters import Adapted, adapted
from planner.replica.candidates import single
from planner.replica.passes import decode_operators, rank_batch

NOT_LOADED = (
    Reason.HEADS | Reason.WIDTH | Reason.QUANT_BLOCK | Reason.EXPERTS | Reason.LINKS | Reason.ENGINE | Reason.MEMORY
)
"""Reasons for which an engine does not start, so that there is no pass to time."""
ONCE = np.ones(1)


def loads(choice: PoolChoice) -> bool:
    """Whether the engine can load the pool's replicas."""
    return not int(choice.replicas.rejected[choice.index]) & int(NOT_LOADED)


def _machine(choice: PoolChoice) -> tuple[Machine, Adapted | None]:
    """Machine of the pool's own layout alone, and the adapters on it."""
    of = choice.replicas
    m = single(of.subject, of.machine.layouts.rows(np.array([of.row[choice.index]])))
    return m, adapted(m, of.subject.adapters) if of.subject.adapters else None


def _calls(m: Machine) -> list[int]:
    """Count the calls of each operator of :func:`planner.engine.step.body` in one pass, in its order."""
    tp, pp, dp = (int(axis[0]) for axis in (m.layouts.tp, m.layouts.pp, m.layouts.dp))
    sparse = sum(op.layers for op in m.routed)
    reduced = (1 if m.model.parallel_block else 2) * m.model.depth + 1 - (sparse if dp > 1 else 0)
    # With data-parallel attention every sparse layer dispatches and combines instead.
    collectives = (reduced if tp > 1 else 0) + (2 * sparse if dp > 1 else 0) + pp - 1
    return [*(op.layers for op in m.linear), *(op.layers for op in m.routed), collectives, 1, m.model.depth]


def _operators(times: Iterable[tuple[Times, int, Floats]]) -> tuple[OperatorTime, ...]:
    """Add up operators of one name; each comes with its calls in a step and how often each of its steps runs, (g,)."""
    out: dict[str, OperatorTime] = {}
    for time, calls, runs in times:
        compute, memory, network, overhead = (
            float(np.broadcast_to(part, (1, len(runs)))[0] @ runs)
            for part in (time.compute, time.memory, time.network, time.overhead)
        )
        before = out.get(time.name)
        if before is not None:
            compute, memory = compute + before.compute, memory + before.memory
            network, overhead = network + before.network, overhead + before.overhead
        out[time.name] = OperatorTime(
            operator=time.name,
            compute=compute,
            memory=memory,
            network=network,
            overhead=overhead,
            count=round(calls * float(runs.sum())) + (before.count if before is not None else 0),
        )
    return tuple(item for item in out.values() if item.total > 0.0)


def _pass(sequences: float, tokens: float, context: float, operators: tuple[OperatorTime, ...]) -> Pass:
    seconds = sum(item.total for item in operators)
    return Pass(sequences=sequences, tokens=tokens, context=context, seconds=seconds, operators=operators)


def decode_pass(choice: PoolChoice, batch: float) -> Pass:
    """One decode step of a replica with ``batch`` sequences, at the contexts of its traffic.

    The plan interpolates between the batches of its table; this step is evaluated at ``batch`` itself.
    """
    m, adapters = _machine(choice)
    contexts = choice.replicas.subject.traffic.contexts()
    times = decode_operators(m, np.full((1, 1), batch), contexts, adapters)
    calls = [*_calls(m), 1, m.model.depth, *([m.model.depth] if adapters else [])]
    operators = _operators((time, count, ONCE) for time, count in zip(times, calls, strict=True))
    return _pass(batch, batch, contexts.mean, operators)


def prefill_pass(choice: PoolChoice, batch: float) -> Pass:
    """Prefill of one prompt of mean length, without what is cached, as if nothing else ran.

    In a pool whose steps are mixed, its chunks leave room for ``batch`` decoding sequences and share their head; that a
    larger step costs less than two is not in these times.
    """
    m, adapters = _machine(choice)
    of = choice.replicas
    traffic = of.subject.traffic
    cached = float(traffic.input.share @ traffic.cached)
    fresh = float(traffic.input.share @ traffic.fresh)
    budget = float(of.budget[choice.index])
    mixed = of.role == "mixed" and of.subject.engine.scheduling.steps == "mixed"
    chunk = max(budget - (float(rank_batch(m, np.full((1, 1), batch))[0, 0]) if mixed else 0.0), 1.0)
    full = fresh // chunk
    tokens, runs = np.array([chunk, max(fresh - full * chunk, 1.0)]), np.array([full, float(fresh > full * chunk)])
    tops = ONCE if mixed else np.array([runs.sum()])
    times = [(time, calls, runs) for time, calls in zip(body(m, tokens), _calls(m), strict=True)]
    times.append((head(m, ONCE), 1, tops))
    reading = prefill_attention(m, np.array([cached]), np.array([fresh]), np.array([budget]))
    times.append((reading, m.model.depth, ONCE))
    if adapters:
        extra = adapters.operators(m, tokens[np.newaxis, :], np.ones((1, 1)))
        times += [(time, m.model.depth, runs) for time in extra]
    return _pass(1.0, fresh, cached, _operators(times))


def memory_parts(choice: PoolChoice) -> AcceleratorMemory:
    """Memory of one accelerator, adapters apart."""
    held, row = choice.replicas.memory, choice.index
    return AcceleratorMemory(
        weights=float(held.weights[row]),
        kv=float(held.kv[row]),
        activations=float(held.activations[row]),
        reserve=float(held.reserve[row]),
        adapters=float(held.adapters[row]),
        capacity=float(held.capacity[row]),
    )


def explained_pool(choice: PoolChoice, batch: float, engine: str, *, sized: bool) -> ExplainedPool:
    """Describe one pool at its decode batch; ``sized`` is false where no number of replicas holds the promise."""
    of, loaded = choice.replicas, loads(choice)
    return ExplainedPool(
        role=of.role,
        hardware=of.subject.chip.hardware,
        engine=engine,
        weights_dtype=of.subject.chip.weights,
        kv_dtype=of.subject.chip.kv,
        layout=layout_of(choice),
        replicas=choice.count if sized else None,
        accelerators_per_replica=choice.size,
        decode=decode_pass(choice, batch) if loaded and of.role != "prefill" else None,
        prefill=prefill_pass(choice, batch) if loaded and of.role != "decode" else None,
        memory=memory_parts(choice) if loaded else None,
    )
