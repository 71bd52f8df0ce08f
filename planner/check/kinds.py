"""Predictions of observations: each kind by its own model, all by the step times that plans are made of."""

from collections.abc import Iterator, Sequence

import numpy as np

from planner.check.expression import Expressed, subject
from planner.engine import layouts as lay
from planner.fleet.closed import Loop, circulate
from planner.fleet.goodput import tpot_mean, ttft_share
from planner.fleet.percentiles import Stage, tpot, ttft
from planner.fleet.pools import rows_of
from planner.fleet.waiting import steady
from planner.numeric import Floats
from planner.replica.candidates import Bench, Replicas, bench, judge
from planner.replica.static import Static, static
from planner.spec.observation import FIXED_BATCH

OPEN_LIMITS = (2.0, 0.2)
"""TTFT and TPOT that 99 % of the requests of ``server_at_slo`` keep where a row states none [s]: those of MLPerf
Inference for Llama-2-70B and Mixtral-8x7B (v4.1 and v5.1 rules, server scenario)."""
LATE = 0.01
"""Share of the requests that may miss the limits of a server."""
_GROUP = tuple[object, ...]


def predict(rows: Sequence[Expressed]) -> Floats:
    """Predict each observation, in its own unit, (n,); NaN where the configuration does not fit in memory."""
    out = np.full(len(rows), np.nan)
    for places in _alike(rows):
        out[places] = _group([rows[place] for place in places])
    return out


def _alike(rows: Sequence[Expressed]) -> Iterator[list[int]]:
    """Places of the rows that differ in layout and load alone."""
    found: dict[_GROUP, list[int]] = {}
    for place, one in enumerate(rows):
        of, load = one.configuration, one.load
        rate = load.rate if one.row.kind in {"open_loop", "server_at_slo"} else None
        limits, reserve = of.engine.scheduling, of.engine.reserve.fraction
        engine = (of.family, of.engine.since, limits.token_budget, limits.max_batch, reserve)
        key = (of.model.name, of.hardware.name, *engine, of.weights, of.kv)
        found.setdefault((*key, load.input, load.output, load.spread, rate), []).append(place)
    yield from found.values()


def _group(rows: Sequence[Expressed]) -> Floats:
    """Predict rows of one subject."""
    on = subject(rows[0].configuration, rows[0].load)
    names = sorted({one.configuration.layout for one in rows})
    of = bench(on, lay.Layouts.of(names), np.zeros(len(names), np.int64))
    layout = np.array([names.index(one.configuration.layout) for one in rows])
    budget = np.full(len(rows), on.engine.scheduling.token_budget)
    limit = np.full(len(rows), on.engine.scheduling.max_batch)
    replicas = judge(of, "mixed", (layout, budget, limit))
    return np.where(replicas.rejected == 0, _by_kind(rows, of, replicas), np.nan)


def _by_kind(rows: Sequence[Expressed], of: Bench, replicas: Replicas) -> Floats:
    circulating = np.array([one.load.circulating for one in rows])
    every = np.arange(len(rows))
    even = rows[0].load.spread is None
    traffic = replicas.subject.traffic
    fresh = float(traffic.input.share @ traffic.fresh)

    def sharing(prompts: Floats) -> Floats:
        """Time per prompt of a batch over that of one alone on each rank."""
        alone = of.passes.machine.layouts.dp[replicas.row].astype(float)
        every, one = (
            static(of.passes, replicas.row, some, fresh, replicas.budget).prefill for some in (prompts, alone)
        )
        return np.asarray(np.minimum(every / one / (prompts / alone), 1.0))

    loop = circulate(rows_of(replicas, every), circulating, replicas.budget, sharing, even=even)
    batch = static(of.passes, replicas.row, circulating, traffic.input.mean, replicas.budget)
    out = np.empty(len(rows))
    for place, one in enumerate(rows):
        kind = one.row.kind
        if kind == "fixed_concurrency":
            out[place] = _closed(one, loop, replicas, place)
        elif kind in {"prefill", "decode"} or one.row.regime == FIXED_BATCH:
            out[place] = _static(one, batch, replicas, place)
        elif kind == "saturated":
            out[place] = _throughput(one, float(replicas.operating.saturation[place]), replicas)
        else:
            out[place] = _open(one, replicas, place)
    return out


def _throughput(one: Expressed, rate: float, replicas: Replicas) -> float:
    """Tokens per second of all replicas, or of one accelerator, at ``rate`` requests per second in each replica."""
    metric, traffic = one.row.metric, replicas.subject.traffic
    tokens = traffic.output.mean + (traffic.input.mean if metric == "total_tokens_per_s" else 0.0)
    if metric == "output_tokens_per_s_per_accelerator":
        return rate * tokens / one.configuration.accelerators
    return rate * tokens * one.configuration.replicas


def _closed(one: Expressed, loop: Loop, replicas: Replicas, place: int) -> float:
    """Figure of a closed loop. A median leaves the first burst out, which is a small part of the requests."""
    metric = one.row.metric
    later, whole = float(loop.ttft[place]), float(loop.mean_ttft(one.load.rounds)[place])
    each, steps = float(loop.tpot[place]), replicas.subject.traffic.steps
    if metric.startswith("tpot"):
        return each
    if metric.startswith("ttft"):
        return {"ttft_mean": whole, "ttft_p50": later}.get(metric, max(float(loop.burst[place]), later))
    if metric == "e2e_latency":
        return later + steps * each
    # The first burst waits less than the later ones where places are short, but nothing ends faster for it.
    rate = min(one.load.circulating / (whole + steps * each), float(replicas.operating.saturation[place]))
    return _throughput(one, rate, replicas)


def _static(one: Expressed, batch: Static, replicas: Replicas, place: int) -> float:
    metric, output = one.row.metric, replicas.subject.traffic.output.mean
    whole = float(batch.whole(output)[place])
    if metric == "prefill_time" or metric.startswith("ttft"):
        return float(batch.prefill[place])
    if metric == "decode_step_time" or metric.startswith("tpot"):
        return float(batch.step[place])
    if metric == "e2e_latency":
        return whole
    return _throughput(one, one.load.circulating / whole, replicas)


def _open(one: Expressed, replicas: Replicas, place: int) -> float:
    """Figure of arrivals at a rate: Poisson, and beyond saturation what the replica sustains."""
    metric = one.row.metric
    saturation = float(replicas.operating.saturation[place])
    if one.row.kind == "server_at_slo" and "tokens" in metric:
        return _throughput(one, _most(replicas, place, saturation), replicas)
    if one.load.rate is None:
        return float("nan")
    if "tokens" in metric:
        return _throughput(one, min(one.load.rate, saturation), replicas)
    stage = Stage(rows_of(replicas, np.array([place])), 1)
    if metric in {"tpot_mean", "ttft_mean"}:
        state = steady(stage.rows, np.array([one.load.rate]), np.array([1]), 1.0)
        first = state.wait + state.base @ replicas.subject.traffic.input.share
        each = tpot_mean(state, replicas.subject.traffic.output)
        return float((each if metric == "tpot_mean" else first)[0])
    level = float(metric.rsplit("_p", 1)[1])
    return (ttft if metric.startswith("ttft") else tpot)(stage, 0, level).at


def _most(replicas: Replicas, place: int, saturation: float) -> float:
    """Largest rate at which 99 % keep the limits: bisection on the load of one replica."""
    rows = rows_of(replicas, np.array([place]))
    first, each = OPEN_LIMITS
    share = replicas.subject.traffic.input.share
    low, high = 0.0, saturation
    for _ in range(20):
        middle = (low + high) / 2.0
        state = steady(rows, np.array([middle]), np.array([1]), 1.0)
        met = ttft_share(state, first, share, slice(None), rows.transfer)
        holds = met[0] >= 1.0 - LATE and state.tpot[0] <= each
        low, high = (middle, high) if holds else (low, middle)
    return low
