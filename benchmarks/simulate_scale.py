"""Time the simulator: 100,000 requests of a conversation trace on 16 replicas, on one core.

Run ``python -m benchmarks.simulate_scale [--requests N] [--replicas N]``. The first run compiles the inner loop, or
loads it where an earlier process has left it; the second one is timed.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.queueing_grid import base, candidate, lengths, sized, stream, workload
from planner.check.lanes import TOKENS, Requests, begun
from planner.check.simulation import finish
from planner.check.steptimes import rules, times
from planner.spec.catalog import Catalog

LOAD = 0.8
"""Share of the saturation of the closed forms."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how long it takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, default=16)
    asked = parser.parse_args(arguments)
    catalog = Catalog()
    of = lengths(catalog)["Azure conversation"]
    replicas = candidate(base(catalog), workload(of, 1.0, np.ones(3), (1.0, 1.0)))
    rate = LOAD * asked.replicas * float(replicas.operating.saturation[0])
    prompt, output = sized(of, asked.requests)
    rng, none = np.random.default_rng(1), np.zeros(asked.requests, np.int64)
    arrival = stream(rate, 1.0, rng, asked.requests)
    q = Requests(arrival, prompt, none, output, rng.random(asked.requests), none)
    r, t = rules(replicas, 0, TOKENS), times(replicas, 0)
    for name in ("compiled or loaded, and run", "run"):
        start = time.perf_counter()
        state = finish(begun(asked.replicas, r, asked.requests), q, r, t)
        taken = time.perf_counter() - start
        steps = int(state.counters[2])
        print(f"{name}: {taken:.2f} s, {asked.requests} requests, {asked.replicas} replicas, {steps} steps")


if __name__ == "__main__":
    main()
