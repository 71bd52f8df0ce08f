"""Candidate evaluations per second on one core: memory, one prefill and the decode fixed point of each.

Run as ``python benchmarks/evaluations.py [--runs N]``. A candidate is a layout with a token budget and a batch limit,
for a mixed, prefill or decode pool; the three share their layouts, as in a search, and percentiles are left out, as
for all but its survivors.
"""

import argparse
import statistics
import time

from planner.plan.subjects import groups, members, subject
from planner.replica.candidates import Role, evaluate, prepare
from planner.spec.catalog import Catalog, resolve

ROLES: tuple[Role, ...] = ("mixed", "prefill", "decode")


def main() -> None:
    """Print a line for each workload of Orbit, and one for all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    catalog = Catalog(())
    case = resolve(catalog.scenario("orbit"), catalog)
    stock = case.scenario.cluster.inventory[0]
    total, spent = 0, 0.0
    for group in groups(case, members(case)):
        if len(group.members) > 1:
            continue
        served = subject(case, stock, group.members)
        times, count = [], 0
        for _ in range(runs + 1):
            prepare.cache_clear()
            begin = time.process_time()
            count = sum(len(evaluate(served, role)) for role in ROLES)
            times.append(time.process_time() - begin)
        median = statistics.median(times[1:])
        total, spent = total + count, spent + median
        print(f"{group.names[0]:10} {count:6} candidates {median * 1e3:7.2f} ms {count / median:10,.0f} /s")
    print(f"{'all':10} {total:6} candidates {spent * 1e3:7.2f} ms {total / spent:10,.0f} /s   medians of {runs}")


if __name__ == "__main__":
    main()
