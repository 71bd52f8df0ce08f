"""How long a whole plan takes at the size of a large site: 50 workloads of 10 models on 500 nodes of 4 kinds.

Run as ``python benchmarks/plan_scale.py [--workloads N] [--nodes N] [--runs N]``. The scenario is made up, always the
same for the same size: rates grow with the nodes and are shared out among the workloads so that a good plan takes most
of the nodes. Every tenth workload has a deadline instead of a promise of TTFT and TPOT. Times are of one process,
without reading cards and without most imports.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from planner.plan.answer import Recommendation
from planner.plan.night import free_rate
from planner.plan.predict import point
from planner.plan.recommend import recommend
from planner.replica.candidates import prepare
from planner.spec.catalog import Case, Catalog, resolve
from planner.spec.scenario import Scenario

HARDWARE = ("h100-sxm", "h200-sxm", "a100-80gb-sxm", "b200-sxm")
"""Kinds of node; each has a fourth of the nodes."""
PROMISES = (("400 ms", "30 ms"), ("800 ms", "40 ms"), ("2 s", "60 ms"), ("4 s", "80 ms"), ("10 s", "100 ms"))
"""TTFT and TPOT, from a pair of eyes that wait to a program that does not."""
LENGTHS = ((600, 1800, 150, 400), (1200, 4000, 250, 700), (3000, 9000, 400, 900), (6000, 20000, 300, 900))
"""Median and 90th percentile of input and output."""
DEADLINE_EACH = 10
"""One in so many workloads is a night's documents."""


@dataclass(frozen=True)
class Served:
    """A model, and the rate of medium requests that takes somewhat less than a node of a mixed site."""

    model: str
    weights: str
    rate: float


MODELS = (
    Served("llama-3.1-8b", "fp8", 90.0),
    Served("llama-3.1-70b", "fp8", 14.0),
    Served("qwen3-32b", "fp8", 27.0),
    Served("qwen3-235b-a22b", "fp8", 9.0),
    Served("gpt-oss-120b", "mxfp4", 30.0),
    Served("mixtral-8x7b", "fp8", 30.0),
    Served("gemma-3-27b", "fp8", 27.0),
    Served("qwen2.5-72b", "fp8", 13.0),
    Served("qwen3-30b-a3b", "fp8", 64.0),
    Served("deepseek-v3", "fp8", 4.0),
)


def _workload(index: int, share: float) -> dict[str, object]:
    """Make up a workload that takes about ``share`` nodes."""
    served = MODELS[index % len(MODELS)]
    # Steps through promises and lengths that do not move with the step through models.
    first, later = PROMISES[(index + index // len(MODELS)) % len(PROMISES)]
    p50, p90, out50, out90 = LENGTHS[(index + index // len(MODELS)) % len(LENGTHS)]
    weight = (0.5, 1.0, 1.5)[index % 3] * 1482.0 / (p50 + out50)
    rate = served.rate * share * weight
    spec: dict[str, object] = {
        "name": f"w{index:02}",
        "model": served.model,
        "weights_dtype": served.weights,
        "lengths": {"input": {"p50": p50, "p90": p90}, "output": {"p50": out50, "p90": out90}},
    }
    if (index + index // len(MODELS)) % DEADLINE_EACH == DEADLINE_EACH - 1:
        return spec | {"batch": {"documents": int(rate * 8 * 3600)}, "promise": {"deadline": "8 h", "start": "22:00"}}
    burstiness = {"dispersion_1s": 1.4, "dispersion_10s": 3.0, "dispersion_60s": 10.0}
    return spec | {
        "traffic": {"rate": f"{rate / 1.5:.4f} req/s", "peak_to_mean": 1.5, "burstiness": burstiness},
        "promise": {"ttft": first, "tpot": later, "share": 0.95},
    }


def scenario(workloads: int, nodes: int) -> Case:
    """Make up a site; ``nodes`` of four kinds, ``workloads`` of up to ten models."""
    each = [nodes // len(HARDWARE) + (kind < nodes % len(HARDWARE)) for kind in range(len(HARDWARE))]
    # A pool rounds up and has spares, which weighs more on small sites.
    share = 1.25 * max(nodes / workloads - 2.0, 0.5)
    document = {
        "name": "site",
        "cluster": {
            "inventory": [
                {"hardware": name, "nodes": count, "price": f"{price} USD/h"}
                for name, count, price in zip(HARDWARE, each, (2.5, 3.2, 1.5, 5.0), strict=True)
                if count
            ]
        },
        "engine": {"name": "vllm", "version": "0.19"},
        "workloads": [_workload(index, share) for index in range(workloads)],
        "reserve": {"nodes": 1},
    }
    return resolve(Scenario.model_validate(document), Catalog())


def measure(case: Case) -> tuple[float, float, Recommendation]:
    """Plan once with nothing remembered; wall time and processor time [s]."""
    for remembered in (prepare, point, free_rate):
        remembered.cache_clear()
    wall, processor = time.perf_counter(), time.process_time()
    answer = recommend(case)
    return time.perf_counter() - wall, time.process_time() - processor, answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the median time and the outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workloads", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    case = scenario(options.workloads, options.nodes)
    runs = [measure(case) for _ in range(options.runs)]
    wall, processor = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
    answer = runs[-1][2]
    models = len({work.model for work in case.scenario.workloads})
    print(
        f"{options.workloads} workloads of {models} models, {options.nodes} nodes of {len(case.hardware)} kinds: "
        f"{wall:.1f} s wall, {processor:.1f} s processor, median of {options.runs}"
    )
    gap = "none" if answer.solver.gap is None else f"{100 * answer.solver.gap:.2f} %"
    print(
        f"feasible {'yes' if answer.feasible else 'no'}, solver {answer.solver.status}, gap {gap}, "
        f"{answer.cluster.nodes_used} nodes used, {answer.cluster.accelerators_used} accelerators, "
        f"{answer.candidates.tried:,} candidates"
    )
    for item in answer.infeasible:
        print(f"{item.workload or 'cluster'}: {item.binding} {item.value} of {item.limit}")


if __name__ == "__main__":
    main()
