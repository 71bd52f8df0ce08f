"""Hold the closed forms of the queue against the simulator, and write ``docs/explanation/queueing.md``.

Run ``python -m benchmarks.queueing_grid`` (some minutes), or with ``--quick`` a few cells, printed only. One pool of
four replicas of Llama-3.1-8B on one H100 each, with vLLM; loads are shares of the *simulated* saturation, arrivals are
a gamma renewal stream of squared coefficient of variation ca^2, lengths those of a trace. Limits are the 95th
percentiles at load 0.8 and Poisson arrivals, so that shares lie where promises do.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from tabulate import tabulate

from planner.check.expression import express, subject
from planner.check.lanes import TOKENS, Requests, begun, time_per_token
from planner.check.simulation import BATCHES, STUDENT, WARM, finish
from planner.check.single import replicas
from planner.check.steptimes import rules, times
from planner.fleet.percentiles import Stage, joint, tpot, ttft
from planner.fleet.pools import rows_of
from planner.numeric import Floats, Ints
from planner.replica.candidates import Replicas, Subject
from planner.spec.catalog import Catalog
from planner.spec.observation import Observation
from planner.spec.scenario import Lengths
from planner.workload.arrivals import index_of_dispersion
from planner.workload.blend import blend
from planner.workload.sampling import draw_lengths
from planner.workload.stats import WINDOWS, Workload, bins

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "queueing.md"
LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97)
BURSTS = (1.0, 4.0, 16.0)
REPLICAS = 4
REQUESTS = 200_000
WIDE = 0.1
"""Half width of an interval over its middle, from which on a cell is shown, not judged."""
LIMITS_AT = 0.8
JUDGED, FURTHER = 0.9, 0.95
"""Loads up to which the closed forms are held to their bounds, and to a wider one of the share."""
TAME = 4.0
"""Burstiness up to which the tail is held to the narrower bound."""
BEST = 400.0
"""Rate that is beyond any saturation here [req/s]."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run shows; each figure with the half width of its 95 % interval."""

    figures: dict[str, float]
    half: dict[str, float]


def lengths(catalog: Catalog) -> dict[str, tuple[Lengths, Lengths]]:
    """Return inputs and outputs of each kind of traffic."""
    orbit = {work.name: work.lengths for work in catalog.scenario("orbit").workloads}
    names = {"Azure code": "code", "Azure conversation": "chat", "Mooncake conversation": "agents"}
    fixed = {"fixed 1,000 and 200": (Lengths(constant=1000), Lengths(constant=200))}
    return fixed | {name: (orbit[of].input, orbit[of].output) for name, of in names.items()}


def workload(of: tuple[Lengths, Lengths], rate: float, dispersion: Floats, limits: tuple[float, float]) -> Workload:
    """Describe traffic as a plan does."""
    return Workload(
        name="grid",
        model="",
        input=bins(of[0]),
        output=bins(of[1]),
        mean_rate=rate,
        hourly=np.full(24, rate),
        peak_rate=rate,
        dispersion=dispersion,
        hit_rate=0.0,
        ttft=limits[0],
        tpot=limits[1],
        share=0.95,
        percentile=95.0,
        deadline=None,
        start=None,
        documents=None,
    )


def base(catalog: Catalog) -> Subject:
    """Return what is served, on what."""
    row = Observation.model_validate(
        {"engine": "vllm", "engine_version": "0.19", "model": "llama-3.1-8b", "hardware": "h100-sxm", "tp": 1}
        | {"kv_dtype": "bf16", "input_tokens": 1000, "output_tokens": 200, "concurrency": 8}
        | {"kind": "fixed_concurrency", "metric": "tpot_mean", "value": 1.0, "unit": "s"}
    )
    one = express(row, catalog)
    return subject(one.configuration, one.load)


def candidate(on: Subject, work: Workload) -> Replicas:
    """Judge the replica for a workload."""
    return replicas(replace(on, traffic=blend([work])), (1, 1, 1, 1))


def stream(rate: float, bursts: float, rng: np.random.Generator, count: int) -> Floats:
    """Draw a gamma renewal stream [s]."""
    return np.asarray(np.cumsum(rng.gamma(1.0 / bursts, bursts / rate, count)))


def play(of: Replicas, arrival: Floats, sizes: tuple[Ints, Ints], seed: int) -> tuple[Floats, Floats, Floats]:
    """Replay requests: times to first token, times per token, and ends."""
    rng, none = np.random.default_rng(seed), np.zeros(len(arrival), np.int64)
    q = Requests(arrival, sizes[0], none, sizes[1], rng.random(len(arrival)), none)
    r = rules(of, 0, TOKENS)
    s = finish(begun(REPLICAS, r, len(arrival)), q, r, times(of, 0))
    handling = of.subject.chip.overhead.per_prefill
    return (
        s.first - arrival + handling,
        time_per_token(s.end - s.first, sizes[1]),
        s.end,
    )


def sized(of: tuple[Lengths, Lengths], count: int) -> tuple[Ints, Ints]:
    """Draw lengths; the same for every load, so that loads differ in nothing else."""
    rng = np.random.default_rng(17)
    return draw_lengths(of[0], rng, count), draw_lengths(of[1], rng, count)


def saturation(of: Replicas, sizes: tuple[Ints, Ints]) -> float:
    """Rate that the pool sustains, from the middle of a run that is offered far too much [req/s]."""
    some = (sizes[0][:20_000], sizes[1][:20_000])
    _, _, end = play(of, np.arange(len(some[0])) / BEST, some, 1)
    done = np.sort(end)
    low, high = int(0.3 * len(done)), int(0.7 * len(done))
    return float((high - low) / (done[high] - done[low]))


def observed(first: Floats, each: Floats, limits: tuple[float, float]) -> Seen:
    """Sum up a run; intervals are of the means of consecutive parts."""
    start = int(WARM * len(first))
    first, each = first[start:], each[start:]

    def figures(a: Floats, b: Floats) -> dict[str, float]:
        good = (a <= limits[0]) & ~(b > limits[1])
        return {
            "TTFT mean": float(a.mean()),
            "TTFT p90": float(np.percentile(a, 90)),
            "TTFT p99": float(np.percentile(a, 99)),
            "TPOT mean": float(np.nanmean(b)),
            "TPOT p90": float(np.nanpercentile(b, 90)),
            "TPOT p99": float(np.nanpercentile(b, 99)),
            "share": float(good.mean()),
        }

    parts = [figures(a, b) for a, b in zip(np.array_split(first, BATCHES), np.array_split(each, BATCHES), strict=True)]
    half = {name: STUDENT * float(np.std([one[name] for one in parts], ddof=1)) / np.sqrt(BATCHES) for name in parts[0]}
    return Seen(figures(first, each), half)


def closed(of: Replicas) -> dict[str, float]:
    """Return the same figures of the closed forms."""
    stage = Stage(rows_of(of, np.zeros(1, np.int64)), REPLICAS)
    first, each = ttft(stage, 0, 95.0), tpot(stage, 0, 95.0)
    return {
        "TTFT mean": first.mean,
        "TTFT p90": first.levels[1],
        "TTFT p99": first.levels[3],
        "TPOT mean": each.mean,
        "TPOT p90": each.levels[1],
        "TPOT p99": each.levels[3],
        "share": float(joint((stage,))[0]),
    }


def grid(
    catalog: Catalog, names: Sequence[str], loads: Sequence[float], bursts: Sequence[float], count: int
) -> list[list[str]]:
    """Compare all cells; a row for each."""
    on, rows = base(catalog), []
    for name in names:
        of = lengths(catalog)[name]
        sizes = sized(of, count)
        plain = workload(of, 1.0, np.ones(3), (1.0, 1.0))
        most = saturation(candidate(on, plain), sizes)
        rng = np.random.default_rng(3)
        first, each, _ = play(candidate(on, plain), stream(LIMITS_AT * most, 1.0, rng, count), sizes, 1)
        limits = float(np.percentile(first, 95)), float(np.nanpercentile(each, 95))
        for burst, load in product(bursts, loads):
            arrival = stream(load * most, burst, np.random.default_rng(5), count)
            dispersion = np.array([max(index_of_dispersion(arrival, window), 1.0) for window in WINDOWS])
            replicas = candidate(on, workload(of, load * most, dispersion, limits))
            first, each, _ = play(replicas, arrival, sizes, 1)
            rows.append(_row(name, burst, load, observed(first, each, limits), closed(replicas)))
    return rows


HEADS = ("Lengths", "ca^2", "Load", "TTFT mean", "p90", "p99", "TPOT mean", "p90", "p99", "Share")


def _row(name: str, burst: float, load: float, seen: Seen, said: dict[str, float]) -> list[str]:
    cells = []
    for figure, value in seen.figures.items():
        half = seen.half[figure]
        if figure == "share":
            cells.append(f"{100.0 * value:.1f} ± {100.0 * half:.1f}; {100.0 * said[figure]:.1f}")
        else:
            off = f"{100.0 * (said[figure] / value - 1.0):+.0f} %"
            cells.append(f"({off})" if half > WIDE * value else off)
    return [name, f"{burst:g}", f"{load:g}", *cells]


TEXT = """\
# The queue, closed and simulated

Written by `python -m benchmarks.queueing_grid`; do not edit.

`recommend` plans with closed forms ([goodput](goodput.md) has them); `simulate` replays requests one by one. This page
holds one against the other: a pool of {replicas} replicas of Llama-3.1-8B, one H100 each, vLLM, {requests:,} requests
a cell of which the first tenth is left out. *Load* is the share of the simulated saturation; *ca^2* the squared
coefficient of variation of the gaps, drawn from a gamma distribution (1 is Poisson). Figures say how far the closed
form lies above or below the simulation, in brackets where its own 95 % interval is wider than 10 % either way. *Share*
is of the requests within both limits, which are the 95th percentiles at load 0.8 with Poisson arrivals: simulated with
its interval, then closed, in per cent.

{table}

## Within the bounds

Bounds up to load 0.9: goodput share within 3 points, p99 of TTFT within 20 % (35 % at ca^2 = 16), mean TPOT within 5 %;
up to 0.95: share within 6 points. Cells in brackets are not judged.

{verdict}
"""


def verdict(rows: Sequence[Sequence[str]]) -> str:
    """Count the cells within bounds."""
    found: dict[str, list[bool]] = {}
    for row in rows:
        burst, load = float(row[1]), float(row[2])
        if load <= JUDGED:
            _judge(found, "TTFT p99", row[5], 35.0 if burst > TAME else 20.0)
            _judge(found, "TPOT mean", row[6], 5.0)
        if load <= FURTHER:
            off = abs(float(row[9].partition(" ± ")[0]) - float(row[9].rpartition("; ")[2]))
            name, bound = ("share, load up to 0.9", 3.0) if load <= JUDGED else ("share, load 0.95", 6.0)
            found.setdefault(name, []).append(off <= bound)
    lines = [[name, f"{sum(some)} of {len(some)}"] for name, some in found.items()]
    return tabulate(lines, ("Figure", "Cells within"), tablefmt="pipe", disable_numparse=True)


def _judge(found: dict[str, list[bool]], name: str, cell: str, bound: float) -> None:
    if not cell.startswith("("):
        found.setdefault(name, []).append(abs(float(cell.partition(" ")[0])) <= bound)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page, or print a few cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a few cells, printed only")
    asked = parser.parse_args(arguments)
    catalog = Catalog()
    if asked.quick:
        rows = grid(catalog, list(lengths(catalog))[:2], (0.5, 0.8), (1.0, 4.0), 20_000)
        print(tabulate(rows, HEADS, disable_numparse=True))
        return
    rows = grid(catalog, list(lengths(catalog)), LOADS, BURSTS, REQUESTS)
    table = tabulate(rows, HEADS, tablefmt="pipe", disable_numparse=True)
    text = TEXT.format(table=table, verdict=verdict(rows), replicas=REPLICAS, requests=REQUESTS)
    PAGE.write_text(text, encoding="utf-8")
    print(verdict(rows))


if __name__ == "__main__":
    main()
