"""How long the choice takes: a cluster like Orbit, and a site with fifty workloads on four kinds of hardware.

Prints medians of several runs, without the imports. Options are made as a search would make them: each kind of hardware
takes its own number of accelerators for a workload, larger replicas take a few more in all, and every other option has
two pools.

    python benchmarks/choice_scale.py
"""

import random
import statistics
import time

from planner.plan.options import Choice, Need, Option, Stock
from planner.plan.solve import runner_up, solve

RUNS = 5
"""Runs of each case; the first is not counted, as it imports."""
SPEED = {"a100": 0.4, "h100": 1.0, "h200": 1.4, "b200": 2.5}
"""Work of an accelerator, for making up options."""
PRICE = {"a100": 1.5, "h100": 2.5, "h200": 3.2, "b200": 5.0}
"""Made-up prices [USD/h]."""
SIZES = (1, 2, 4, 8, 16)
RESERVE = 1
DEADLINE_EACH = 5
"""One in so many workloads has a deadline instead of a reserve."""


def offers(rng: random.Random, name: str, work: float, number: int, kinds: list[str]) -> list[Option]:
    """Options of one workload that takes ``work`` accelerators of speed 1."""
    made = []
    for index in range(number):
        hardware = kinds[index % len(kinds)]
        pools = 1 + index // len(kinds) % 2
        needs = []
        for rank in range(pools):
            size = rng.choice(SIZES)
            waste = 1.0 + 0.05 * SIZES.index(size) + rng.random() * 0.3
            count = max(1, round(work / pools / SPEED[hardware] * waste / size))
            needs.append(Need(f"{name}.{index}.{rank}", hardware, size, count, not name.startswith("night")))
        label = " | ".join(f"TP{need.size}" for need in needs)
        made.append(Option(f"{name}.{index}", (name,), f"{name}: {label} on {hardware}", tuple(needs)))
    return made


def case(
    workloads: int, number: int, nodes: dict[str, int], mean: float
) -> tuple[list[Option], list[Stock], list[str]]:
    """Options, stocks and names."""
    rng = random.Random(workloads)  # noqa: S311 - the same figures each time
    names = [f"{'night' if not (index + 1) % DEADLINE_EACH else 'day'}{index}" for index in range(workloads)]
    options = [
        option
        for name in names
        for option in offers(rng, name, rng.lognormvariate(0.0, 0.8) * mean, number, list(nodes))
    ]
    return options, [Stock(name, count, 8, PRICE[name], 1200.0) for name, count in nodes.items()], names


def measure(title: str, made: tuple[list[Option], list[Stock], list[str]]) -> None:
    """Print medians over runs."""
    for objective in ("cost", "nodes"):
        first, second, answer = [], [], None
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            answer = solve(*made, RESERVE, objective)
            middle = time.perf_counter()
            if isinstance(answer, Choice):
                runner_up(*made, RESERVE, objective, answer)
            first.append(middle - start)
            second.append(time.perf_counter() - middle)
        choice, other = (statistics.median(each[1:]) * 1e3 for each in (first, second))
        print(f"{title:<42} {objective:<6} choice {choice:8.1f} ms   runner-up {other:8.1f} ms   {summary(answer)}")


def summary(answer: object) -> str:
    """Outcome in a few words."""
    if not isinstance(answer, Choice):
        return "no plan"
    return f"{answer.status}, gap {answer.gap:.4f}, {answer.nodes_used} nodes, objective {answer.objective:g}"


if __name__ == "__main__":
    measure("4 workloads x 15 options, 16 nodes", case(4, 15, {"h100": 16}, 12.0))
    sites = {"a100": 125, "h100": 125, "h200": 125, "b200": 125}
    measure("50 workloads x 40 options, 4 x 125 nodes", case(50, 40, sites, 40.0))
    scarce = {"a100": 60, "h100": 60, "h200": 60, "b200": 60}
    measure("50 workloads x 40 options, 4 x 60 nodes", case(50, 40, scarce, 40.0))
