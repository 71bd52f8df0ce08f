"""What an offer does for each of its workloads: latencies, shares, deadlines, each with its band."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.engine.step import band, body, prefill_attention
from planner.fleet.goodput import CENTRE
from planner.fleet.percentiles import LEVELS, Spread, Stage, joint, tpot, ttft
from planner.fleet.pools import rows_of
from planner.plan.night import run_end
from planner.plan.offers import Offer, PoolChoice
from planner.plan.predicted import AtPercentile, Band, DeadlineResult, Percentiles, Predicted
from planner.plan.subjects import Member
from planner.replica.candidates import Subject, single
from planner.replica.passes import decode_operators


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
    band: float
    """Half width of the relative band of its times."""


def stage(pool: PoolChoice, count: int | None = None) -> Stage:
    """View a pool as a goodput row with ``count`` replicas, its own where absent."""
    links = np.array([pool.width]) if pool.width and pool.replicas.role == "prefill" else None
    return Stage(rows_of(pool.replicas, np.array([pool.index]), links), pool.count if count is None else count)


def time_band(pool: PoolChoice, batch: float) -> float:
    """Relative half width of the 80 % band of the pool's step times at ``batch``."""
    of = pool.replicas
    one = of.machine.layouts.rows(np.array([of.row[pool.index]]))
    contexts = of.subject.traffic.contexts()
    m = single(of.subject, one)
    if of.role == "prefill":
        mean, chunk = np.array([of.subject.traffic.input.mean]), np.array([float(of.budget[pool.index])])
        return float(band((prefill_attention(m, np.zeros(1), mean, chunk), *body(m, mean)))[0, 0])
    return float(band(decode_operators(m, np.full((1, 1), max(batch, 1.0)), contexts))[0, 0])


@lru_cache(maxsize=1024)
def point(pool: PoolChoice, *, deadline: bool) -> Point:
    """Where a pool operates; deadline work runs at its largest batch."""
    of, i = pool.replicas, pool.index
    saturation = float(of.operating.saturation[i])
    if deadline:
        batch = float(of.operating.batch_limit[i])
        return Point(batch, 1.0, 1.0, saturation * pool.count, time_band(pool, batch))
    each = of.subject.traffic.peak_rate / pool.count
    tables = of.operating.tables
    if of.role == "prefill":
        busy = each * float(tables.served[i, 0])
        return Point(0.0, min(busy, 1.0), each / saturation, saturation * pool.count, time_band(pool, 0.0))
    batch = float(of.operating.at(np.broadcast_to(each, len(of)))[i])
    if each < tables.rate[i, 0]:
        batch = each / float(tables.rate[i, 0])
    busy = 1.0 - float(np.exp(-batch))
    return Point(batch, busy, each / saturation, saturation * pool.count, time_band(pool, batch))


def _percentiles(spreads: Sequence[Spread], percentile: float, limit: float, load: float, width: float) -> Percentiles:
    """Percentiles of a latency with its band; an end has no value where the load there has no steady state."""
    mid, low, high = spreads
    if load >= CENTRE:
        nothing = AtPercentile(percentile=percentile, value=None, band=(None, None))
        return Percentiles(mean=None, p50=None, p90=None, p95=None, p99=None, at=nothing, limit=limit)
    worst = None if load * (1.0 + width) >= CENTRE else max(high.at, mid.at)
    at = AtPercentile(percentile=percentile, value=mid.at, band=(min(low.at, mid.at), worst))
    named = dict(zip((f"p{round(level * 100)}" for level in LEVELS), mid.levels, strict=True))
    return Percentiles(mean=mid.mean, at=at, limit=limit, **named)


def interactive(offer: Offer, member: Member, width: float) -> Predicted:
    """Predict an interactive workload of an offer; ``width`` is the band of its times."""
    traffic = offer.pools[0].replicas.subject.traffic
    index = [work.name for work in traffic.workloads].index(member.spec.name)
    stages = tuple(stage(pool) for pool in offer.pools)
    first = stages[0]
    last = stages[-1]
    loads = [point(pool, deadline=False).load for pool in offer.pools]
    work = member.numbers
    slow, fast = 1.0 + width, 1.0 / (1.0 + width)
    share, worse, better = (float(joint(stages, scale)[index]) for scale in (1.0, slow, fast))
    spreads = [
        [kind(of, index, work.percentile, scale) for scale in (1.0, fast, slow)]
        for kind, of in ((ttft, first), (tpot, last))
    ]
    offered = traffic.peak_rate * float(traffic.weight[index])
    return Predicted(
        ttft=_percentiles(spreads[0], work.percentile, work.ttft or 0.0, loads[0], width),
        tpot=_percentiles(spreads[1], work.percentile, work.tpot or 0.0, loads[-1], width),
        deadline=None,
        goodput_share=share,
        goodput_share_band=(min(worse, share), max(better, share)),
        goodput_share_required=work.share,
        offered_rps=offered,
        goodput_rps=offered * share,
        output_tokens_per_s=offered * work.output.mean,
        prefix_hit_rate=work.hit_rate,
    )


def run(offer: Offer, member: Member, work: Subject, width: float) -> Predicted:
    """Predict a deadline workload of an offer."""
    limit = float(member.numbers.deadline or 0.0)
    ends = [run_end(offer, member, work, scale) for scale in (1.0, 1.0 / (1.0 + width), 1.0 + width)]
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
        offered_rps=rate,
        goodput_rps=rate if centre is not None and centre <= limit else 0.0,
        output_tokens_per_s=rate * member.numbers.output.mean,
        prefix_hit_rate=member.numbers.hit_rate,
    )
