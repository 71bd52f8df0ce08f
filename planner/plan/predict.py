"""What an offer does for each of its workloads: latencies, shares, deadlines, each with its band."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.fleet.goodput import CENTRE
from planner.fleet.percentiles import LEVELS, Spread, Stage, joint, tpot, ttft
from planner.fleet.pools import rows_of
from planner.plan.certainty import Certainty, Factor, breaks_at
from planner.plan.night import run_end
from planner.plan.offers import Offer, PoolChoice
from planner.plan.predicted import AtPercentile, Band, DeadlineResult, Percentiles, Predicted
from planner.plan.subjects import Member
from planner.replica.candidates import Subject


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One pool of an offer at its busiest hour, without spares."""

    batch: float
    """Sequences that decode in one replica."""
    busy: float
    """Share of the time that a replica is busy."""
    load: float
    """Offered rate over the saturation rate."""
    saturation: float
    """Saturation rate of the whole pool [req/s]."""


def stage(pool: PoolChoice, count: int | None = None) -> Stage:
    """View a pool as a goodput row with ``count`` replicas, its own where absent."""
    links = np.array([pool.width]) if pool.width and pool.replicas.role == "prefill" else None
    return Stage(rows_of(pool.replicas, np.array([pool.index]), links), pool.count if count is None else count)


@lru_cache(maxsize=1024)
def point(pool: PoolChoice, *, deadline: bool) -> Point:
    """Where a pool operates; deadline work runs at its largest batch."""
    of, i = pool.replicas, pool.index
    saturation = float(of.operating.saturation[i])
    if deadline:
        batch = float(of.operating.batch_limit[i])
        return Point(batch, 1.0, 1.0, saturation * pool.count)
    each = of.subject.traffic.peak_rate / pool.count
    tables = of.operating.tables
    if of.role == "prefill":
        busy = each * float(tables.served[i, 0])
        return Point(0.0, min(busy, 1.0), each / saturation, saturation * pool.count)
    batch = float(of.operating.at(np.broadcast_to(each, len(of)))[i])
    if each < tables.rate[i, 0]:
        batch = each / float(tables.rate[i, 0])
    busy = 1.0 - float(np.exp(-batch))
    return Point(batch, busy, each / saturation, saturation * pool.count)


def _percentiles(
    spreads: Sequence[Spread],
    percentile: float,
    limit: float,
    load: float,
    sure: tuple[Factor, Factor],
    edge: float = 1.0,
) -> Percentiles:
    """Percentiles of a latency with its band; an end has no value where the load there has no steady state.

    ``spreads`` are with steps as predicted, and at either end of their band; ``sure`` are the factors on steps and on
    the latency itself, of which the one that reaches further counts. All is ``edge`` times as long.
    """
    mid, low, high = (
        Spread(one.mean * edge, tuple(level * edge for level in one.levels), one.at * edge) for one in spreads
    )
    if load >= CENTRE:
        nothing = AtPercentile(percentile=percentile, value=None, band=(None, None))
        return Percentiles(mean=None, p50=None, p90=None, p95=None, p99=None, at=nothing, limit=limit)
    step, own = sure
    worst = None if load * step.high >= CENTRE else max(high.at, mid.at * own.high)
    at = AtPercentile(percentile=percentile, value=mid.at, band=(min(low.at, mid.at * own.low), worst))
    named = dict(zip((f"p{round(level * 100)}" for level in LEVELS), mid.levels, strict=True))
    return Percentiles(mean=mid.mean, at=at, limit=limit, **named)


def _chance(stages: tuple[Stage, ...], index: int, required: float, sure: Certainty) -> float:
    """Probability that the promise holds: that neither factor reaches what alone would break it."""
    step = breaks_at(lambda factor: float(joint(stages, factor)[index]) >= required)
    first = breaks_at(lambda factor: float(joint(stages, first=factor)[index]) >= required)
    return sure.step.below(step) * sure.first.below(first)


def interactive(offer: Offer, member: Member, sure: Certainty) -> Predicted:
    """Predict an interactive workload of an offer, with what is known of its times."""
    traffic = offer.pools[0].replicas.subject.traffic
    index = [work.name for work in traffic.workloads].index(member.spec.name)
    stages = tuple(stage(pool) for pool in offer.pools)
    loads = [point(pool, deadline=False).load for pool in offer.pools]
    work, step = member.numbers, sure.step
    share = float(joint(stages)[index])
    worse, better = (
        float(np.hypot(joint(stages, slow)[index] - share, joint(stages, first=late)[index] - share))
        for slow, late in ((step.high, sure.first.high), (step.low, sure.first.low))
    )
    spreads = [
        [kind(of, index, work.percentile, scale) for scale in (1.0, step.low, step.high)]
        for kind, of in ((ttft, stages[0]), (tpot, stages[-1]))
    ]
    offered = traffic.peak_rate * float(traffic.weight[index])
    return Predicted(
        ttft=_percentiles(spreads[0], work.percentile, work.ttft or 0.0, loads[0], (step, sure.first), sure.edge),
        tpot=_percentiles(spreads[1], work.percentile, work.tpot or 0.0, loads[-1], (step, step)),
        deadline=None,
        goodput_share=share,
        goodput_share_band=(max(share - worse, 0.0), min(share + better, 1.0)),
        goodput_share_required=work.share,
        promise_probability=_chance(stages, index, work.share, sure),
        offered_rps=offered,
        goodput_rps=offered * share,
        output_tokens_per_s=offered * work.output.mean,
        prefix_hit_rate=work.hit_rate,
    )


def run(offer: Offer, member: Member, work: Subject, step: Factor) -> Predicted:
    """Predict a deadline workload of an offer, with what is known of the time of its steps."""
    limit = float(member.numbers.deadline or 0.0)
    ends = [run_end(offer, member, work, scale) for scale in (1.0, step.low, step.high)]
    centre, early, late = (end if np.isfinite(end) else None for end in ends)
    span: Band = (early, late)
    rate = float(member.numbers.documents or 0) / (centre or limit)
    return Predicted(
        ttft=None,
        tpot=None,
        deadline=DeadlineResult(limit=limit, finish=centre, band=span, met=centre is not None and centre <= limit),
        goodput_share=None,
        goodput_share_band=None,
        goodput_share_required=None,
        promise_probability=step.below(breaks_at(lambda factor: run_end(offer, member, work, factor) <= limit)),
        offered_rps=rate,
        goodput_rps=rate if centre is not None and centre <= limit else 0.0,
        output_tokens_per_s=rate * member.numbers.output.mean,
        prefix_hit_rate=member.numbers.hit_rate,
    )
