"""``simulate``: a plan replayed request by request, beside what the closed forms say of it.

Arrivals and lengths are drawn from the scenario at its busiest hour. Pools are replayed without their spares, as plans
are sized. A split pool hands each request over once its prompt is done; what crosses a link takes as long as the plan
says, and links are never short of bandwidth.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from planner.check.lanes import TOKENS, Requests, Rules, State, Times, begun, time_per_token
from planner.check.simulated import Observed, Simulated, SimulatedWorkload, Simulation
from planner.check.stepping import feed, look
from planner.check.steptimes import ranks, rules, times
from planner.errors import NoPlanError
from planner.fleet.pools import transfer_time
from planner.intake.traces import Trace
from planner.numeric import Floats, Ints
from planner.plan.describe import Service
from planner.plan.offers import Offer, PoolChoice
from planner.plan.recommend import plan_of, predicted
from planner.plan.subjects import Member
from planner.spec.catalog import Case
from planner.workload.sampling import draw_arrivals, draw_lengths

WARM = 0.1
"""Share of the time after which requests count: the pools begin empty."""
MOST = 200_000
"""Requests of one pool where no time is asked for."""
LONGEST = 4.0 * 3600.0
"""Time that is replayed where none is asked for, at most [s]."""
SLICE = 2000
"""Requests between two signs of life."""
LEVELS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
BATCHES = 20
"""Parts of the time whose shares the confidence interval comes from."""
STUDENT = 2.093
"""97.5th percentile of Student's t with 19 degrees of freedom."""
Watch = Callable[[int, int], None]
"""Told how many requests of how many have arrived."""


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What became of the requests of one offer; (n,) columns in the order of their arrival."""

    member: Ints
    """Place of the workload among the members."""
    arrival: Floats
    ttft: Floats
    """NaN where it was rejected [s]."""
    tpot: Floats
    """NaN where there is one output token [s]."""
    again: Ints
    duration: float


def simulate(
    case: Case,
    version: str,
    seed: int = 1,
    hours: float | None = None,
    watch: Watch | None = None,
    traces: Mapping[str, Trace] = MappingProxyType({}),
) -> Simulation:
    """Replay the plan of a case.

    Parameters
    ----------
    case
        A scenario with its cards.
    version
        Of planner.
    seed
        Of the random numbers: the same seed gives the same answer.
    hours
        Time to replay, all at the rate of the busiest hour; None: up to 200,000 requests of each pool, 4 h at most.
    watch
        Told now and then how many requests of how many have arrived.
    traces
        Requests to replay instead of drawn ones, by workload; ``hours`` cuts them.

    Raises
    ------
    NoPlanError
        Where there is no plan to replay.

    """
    services = plan_of(case)
    if not services:
        msg = "there is no plan to simulate; planner recommend says why"
        raise NoPlanError(msg)
    out, count, longest, names = [], 0, 0.0, []
    for number, service in enumerate(services):
        names += [member.spec.name for member in service.offer.group.deadline]
        if service.offer.group.interactive:
            done = replay(service.offer, np.random.default_rng((seed, number)), hours, watch, traces)
            count, longest = count + len(done.arrival), max(longest, done.duration)
            out += list(_workloads(case, service, done))
    return Simulation(
        schema_version="1",
        planner_version=version,
        scenario=case.scenario.name,
        seed=seed,
        hours=longest / 3600.0,
        requests=count,
        left_out=tuple(names),
        workloads=tuple(out),
    )


def replay(
    offer: Offer,
    rng: np.random.Generator,
    hours: float | None,
    watch: Watch | None = None,
    traces: Mapping[str, Trace] = MappingProxyType({}),
) -> Replay:
    """Replay the interactive workloads of an offer."""
    traffic = offer.pools[0].replicas.subject.traffic
    every = offer.group.interactive
    names = [work.name for work in traffic.workloads]
    rates = [traffic.peak_rate * float(traffic.weight[names.index(member.spec.name)]) for member in every]
    given = [traces[member.spec.name] for member in every if member.spec.name in traces]
    duration = min([MOST / sum(rates), LONGEST, *(float(one.arrival[-1]) for one in given)])
    if hours is not None:
        duration = hours * 3600.0
    drawn = [
        _given(member, traces[member.spec.name], duration)
        if member.spec.name in traces
        else _drawn(member, rate, rng, duration)
        for member, rate in zip(every, rates, strict=True)
    ]
    arrival = np.concatenate([one[0] for one in drawn])
    order = np.argsort(arrival, kind="stable")
    member = np.repeat(np.arange(len(drawn)), [len(one[0]) for one in drawn])[order]
    arrival = arrival[order]
    prompt, cached, output = (np.concatenate([one[part] for one in drawn])[order] for part in (1, 2, 3))
    none = np.zeros(len(order), np.int64)
    requests = Requests(arrival, prompt, cached, output, rng.random(len(order)), none)
    handling = offer.pools[0].replicas.subject.chip.overhead.per_prefill
    if len(offer.pools) == 1:
        done = run(offer.pools[0], requests, watch)
        first, end, again = done.first, done.end, done.again
    else:
        first, end, again = _split(offer, requests, watch)
    tpot = time_per_token(end - first, output)
    return Replay(member, arrival, first - arrival + handling, tpot, again, duration)


def _drawn(member: Member, rate: float, rng: np.random.Generator, duration: float) -> tuple[Floats, Ints, Ints, Ints]:
    """Arrivals, inputs, tokens of them that are cached, and outputs of a workload."""
    spec, numbers = member.spec, member.numbers
    arrival = draw_arrivals(rate, numbers.dispersion, rng, duration)
    prompt = draw_lengths(spec.lengths.input, rng, len(arrival))
    output = draw_lengths(spec.lengths.output, rng, len(arrival))
    return arrival, prompt, np.floor(numbers.hit_rate * prompt).astype(np.int64), output


def _given(member: Member, trace: Trace, duration: float) -> tuple[Floats, Ints, Ints, Ints]:
    """Return the same of a trace; the scenario's hit rate counts."""
    some = trace.arrival <= duration
    cached: Ints = np.floor(member.numbers.hit_rate * trace.input[some]).astype(np.int64)
    return trace.arrival[some], trace.input[some], cached, trace.output[some]


def run(pool: PoolChoice, requests: Requests, watch: Watch | None = None) -> State:
    """Replay requests on a pool without its spares."""
    of, index = pool.replicas, pool.index
    r, t = rules(of, index, TOKENS), times(of, index)
    state = begun(pool.count * ranks(of, index), r, len(requests.arrival))
    return finish(state, requests, r, t, watch)


def finish(state: State, requests: Requests, r: Rules, t: Times, watch: Watch | None = None) -> State:
    """Let all requests arrive and end."""
    count = len(requests.arrival)
    for start in range(0, count, SLICE):
        feed(state, requests, r, t, (start, min(start + SLICE, count)))
        if watch is not None:
            watch(min(start + SLICE, count), count)
    look(state, requests, r, t, float("inf"))
    return state


def _split(offer: Offer, requests: Requests, watch: Watch | None) -> tuple[Floats, Floats, Ints]:
    """Replay a prefill pool and the decode pool behind it: first and last tokens, and how often each was recomputed."""
    one, two = offer.pools
    alone = requests._replace(output=np.ones_like(requests.output))
    before = run(one, alone, watch)
    width = np.array([[float(max(one.width, 1))]])
    moved = transfer_time(one.replicas, requests.prompt.astype(float), width)[0] if one.width else 0.0
    first = before.first + moved
    ready = np.argsort(np.where(np.isnan(first), np.inf, first), kind="stable")
    ready = ready[~np.isnan(first[ready])]
    later = Requests(
        arrival=first[ready],
        prompt=requests.prompt[ready],
        cached=requests.cached[ready],
        output=requests.output[ready],
        draw=requests.draw[ready],
        decoded=np.ones(len(ready), np.int64),
    )
    after = run(two, later, watch)
    end, again = np.full(len(first), np.nan), before.again.copy()
    end[ready] = after.end
    again[ready] += after.again
    return first, end, again


def _workloads(case: Case, service: Service, done: Replay) -> Iterator[SimulatedWorkload]:
    for place, member in enumerate(service.offer.group.interactive):
        chosen = (done.member == place) & (done.arrival >= WARM * done.duration)
        found = _simulated(member, done, chosen)
        yield SimulatedWorkload(
            name=member.spec.name,
            predicted=predicted(case, service, member),
            simulated=found,
            holds=found.goodput_share >= member.numbers.share,
        )


def _simulated(member: Member, done: Replay, chosen: Floats) -> Simulated:
    work = member.numbers
    ttft, tpot = done.ttft[chosen], done.tpot[chosen]
    served = ~np.isnan(ttft)
    good = served & (ttft <= (work.ttft or np.inf)) & ~(tpot > (work.tpot or np.inf))
    share = float(good.mean()) if len(good) else 0.0
    parts = [float(one.mean()) for one in np.array_split(good, BATCHES) if len(one)]
    half = STUDENT * float(np.std(parts, ddof=1)) / np.sqrt(len(parts)) if len(parts) > 1 else 1.0
    return Simulated(
        requests=int(chosen.sum()),
        ttft=_observed(ttft[served], work.percentile, work.ttft),
        tpot=_observed(tpot[~np.isnan(tpot)], work.percentile, work.tpot),
        goodput_share=share,
        goodput_share_interval=(max(share - half, 0.0), min(share + half, 1.0)),
        offered_rps=float(chosen.sum()) / ((1.0 - WARM) * done.duration),
        recomputed=float(done.again[chosen].mean()) if chosen.any() else 0.0,
        rejected=int(np.count_nonzero(~served)),
    )


def _observed(values: Floats, percentile: float, limit: float | None) -> Observed:
    at = np.percentile(values, [*LEVELS.values(), percentile]) if len(values) else np.zeros(5)
    named = dict(zip(LEVELS, at[:-1].tolist(), strict=True))
    return Observed(mean=float(values.mean()) if len(values) else 0.0, at=float(at[-1]), limit=limit or 0.0, **named)
