"""The choice is the best there is, keeps its laws, and says why where there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan.options import Choice, Need, Option, Shortfall, Stock
from planner.plan.solve import runner_up, solve

Case = tuple[list[Option], list[Stock], list[str], int]
"""Options, stocks, workloads, reserve."""

OBJECTIVES = ["cost", "nodes", "power"]
HARDWARE = ["a", "b"]
NODE = 4
"""Accelerators of a node."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small cases: up to two workloads, a few options, two kinds of hardware."""
    kinds = HARDWARE[: draw(st.integers(1, 2))]
    price, power = st.sampled_from([1.0, 1.5, 2.25, 4.0]), st.sampled_from([300.0, 700.0, 1000.0])
    stocks = [Stock(name, draw(st.integers(0, 4)), NODE, draw(price), draw(power)) for name in kinds]
    names = ["chat", "code"][: draw(st.integers(1, 2))]
    options: list[Option] = []
    for group in [*((name,) for name in names), tuple(names)]:
        for _ in range(draw(st.integers(0, 2))):
            index = len(options)
            needs = tuple(
                Need(
                    f"{index}.{rank}",
                    draw(st.sampled_from(kinds)),
                    draw(st.sampled_from([1, 2, 4, 8])),
                    draw(st.integers(1, 4)),
                    draw(st.booleans()),
                )
                for rank in range(draw(st.integers(1, 2)))
            )
            options.append(Option(str(index), group, draw(st.sampled_from(["x", "y"])), needs))
    return options, stocks, names, draw(st.integers(0, 2))


def covers(options: Sequence[Option], workloads: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Sets of options that cover each workload exactly once."""
    for count in range(1, len(workloads) + 1):
        for chosen in combinations(range(len(options)), count):
            names = [name for index in chosen for name in options[index].workloads]
            if sorted(names) == sorted(workloads):
                yield chosen


def fits(pools: list[tuple[int, int, int]], nodes: int) -> bool:
    """Whether (size, replicas, cap) pools fit on so many nodes, by trying each node's every filling."""
    if nodes == 0:
        return not any(left for _, left, _ in pools)
    for filling in product(*(range(min(left, cap) + 1) for _, left, cap in pools)):
        if sum(size * here for (size, _, _), here in zip(pools, filling, strict=True)) <= NODE:
            rest = [(size, left - here, cap) for (size, left, cap), here in zip(pools, filling, strict=True)]
            if fits(rest, nodes - 1):
                return True
    return False


def least_nodes(needs: Sequence[tuple[Need, int]], reserve: int, most: int) -> int | None:
    """Fewest nodes of one kind for needs at given caps, None where more than ``most``."""
    whole, pools = 0, []
    for need, cap in needs:
        replicas = need.count + (reserve * cap if need.spared else 0)
        if need.size >= NODE:
            whole += replicas * need.size // NODE
        else:
            pools.append((need.size, replicas, cap))
    room = sum(size * replicas for size, replicas, _ in pools)
    for nodes in range(-(-room // NODE), most - whole + 1):
        if fits(pools, nodes):
            return nodes + whole
    return None


def brute(case: Case, objective: str) -> float | None:
    """Least objective over all options, caps and node counts."""
    options, stocks, workloads, reserve = case
    best = None
    for chosen in covers(options, workloads):
        needs = [need for index in chosen for need in options[index].needs]
        for caps in product(*(range(1, max(1, NODE // need.size) + 1) for need in needs)):
            value = 0.0
            for stock in stocks:
                own = [(need, cap) for need, cap in zip(needs, caps, strict=True) if need.hardware == stock.hardware]
                nodes = least_nodes(own, reserve, stock.nodes)
                if nodes is None:
                    break
                busy = sum(need.size * (need.count + (reserve * cap if need.spared else 0)) for need, cap in own)
                value += {"cost": busy * stock.price, "nodes": float(nodes), "power": busy * stock.power}[objective]
            else:
                best = value if best is None else min(best, value)
    return best


def objective_of(answer: Choice | Shortfall) -> float | None:
    return answer.objective if isinstance(answer, Choice) else None


def check_placement(case: Case, choice: Choice) -> None:
    """All replicas are there, no node is over, caps hold, and any loss of the reserve leaves every count."""
    options, stocks, _, reserve = case
    needs = {need.pool: need for index in choice.options for need in options[index].needs}
    size = {stock.hardware: stock.node_accelerators for stock in stocks}
    assert choice.caps.keys() == choice.spares.keys() == needs.keys()
    held = dict.fromkeys(needs, 0)
    for node in choice.placement:
        assert node.replicas
        assert sum(needs[pool].size * count for pool, count in node.replicas) <= node.span * size[node.hardware]
        for pool, count in node.replicas:
            assert needs[pool].hardware == node.hardware
            assert 1 <= count <= choice.caps[pool]
            assert node.span == max(1, needs[pool].size // size[node.hardware])
            held[pool] += count
    assert held == {pool: need.count + choice.spares[pool] for pool, need in needs.items()}
    for stock in stocks:
        used = sum(node.span for node in choice.placement if node.hardware == stock.hardware)
        assert used == choice.nodes[stock.hardware] <= stock.nodes
    # A node of a replica that spans several is lost with all of them, so losing blocks is losing nodes.
    for lost in combinations(choice.placement, min(reserve, len(choice.placement))):
        for pool, need in needs.items():
            gone = sum(dict(node.replicas).get(pool, 0) for node in lost)
            assert not need.spared or held[pool] - gone >= need.count


@given(case=cases(), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=150)
def test_the_choice_is_the_best_of_all(case: Case, objective: str) -> None:
    answer = solve(*case, objective, gap=0.0)
    best = brute(case, objective)
    if isinstance(answer, Choice):
        assert answer.objective == pytest.approx(best, rel=1e-9)
        assert (answer.status, answer.gap) == ("optimal", 0.0)
        names = [name for index in answer.options for name in case[0][index].workloads]
        assert sorted(names) == sorted(case[2])
        check_placement(case, answer)
    else:
        assert best is None
        assert answer.proved
