"""The choice is the best there is, keeps its laws, and says why where there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.numeric import Floats
from planner.plan import programme
from planner.plan import solve as solving
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


@cache
def fits(pools: tuple[tuple[int, int, int], ...], nodes: int) -> bool:
    """Whether (size, replicas, cap) pools fit on so many nodes, by trying each node's every filling."""
    if nodes == 0:
        return not any(left for _, left, _ in pools)
    for filling in product(*(range(min(left, cap) + 1) for _, left, cap in pools)):
        if sum(size * here for (size, _, _), here in zip(pools, filling, strict=True)) <= NODE:
            rest = ((size, left - here, cap) for (size, left, cap), here in zip(pools, filling, strict=True))
            if fits(tuple(sorted(rest)), nodes - 1):
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
        if fits(tuple(sorted(pools)), nodes):
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


def value_of(answer: Choice | Shortfall) -> float:
    """Objective, infinite where there is no plan."""
    return answer.objective if isinstance(answer, Choice) else np.inf


def no_more(one: Choice | Shortfall, other: Choice | Shortfall) -> bool:
    return value_of(one) <= value_of(other) * (1.0 + 1e-9)


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


@given(case=cases(), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=60)
def test_more_nodes_are_never_dearer(case: Case, objective: str) -> None:
    options, stocks, names, reserve = case
    more = [replace(stock, nodes=stock.nodes + 1) for stock in stocks]
    assert no_more(solve(options, more, names, reserve, objective), solve(*case, objective))


@given(case=cases(), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=60)
def test_a_smaller_reserve_is_never_dearer(case: Case, objective: str) -> None:
    options, stocks, names, reserve = case
    assert no_more(solve(options, stocks, names, max(0, reserve - 1), objective), solve(*case, objective))


@given(case=cases(), share=st.floats(0.1, 1.0))
@settings(max_examples=60)
def test_a_lower_price_is_never_dearer(case: Case, share: float) -> None:
    options, stocks, names, reserve = case
    cheaper = [replace(stocks[0], price=stocks[0].price * share), *stocks[1:]]
    # Plans within a thousandth of the cheapest accelerator count as equal, so as much may be between them.
    slack = programme.TIE * max(stock.price for stock in stocks)
    assert value_of(solve(options, cheaper, names, reserve)) <= value_of(solve(*case)) + slack


@given(case=cases(), objective=st.sampled_from(OBJECTIVES), dropped=st.integers(0, 5))
@settings(max_examples=60)
def test_another_option_never_makes_it_worse(case: Case, objective: str, dropped: int) -> None:
    options, stocks, names, reserve = case
    fewer = [option for index, option in enumerate(options) if index != dropped]
    assert no_more(solve(*case, objective), solve(fewer, stocks, names, reserve, objective))


@given(case=cases(), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=40)
def test_the_same_case_gets_the_same_plan(case: Case, objective: str) -> None:
    assert solve(*case, objective) == solve(*case, objective)


@given(case=cases(), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=60)
def test_the_runner_up_is_the_best_of_another_kind(case: Case, objective: str) -> None:
    options, stocks, names, reserve = case
    choice = solve(*case, objective)
    if not isinstance(choice, Choice):
        return
    kinds = {name: options[index].kind for index in choice.options for name in options[index].workloads}
    values = []
    for chosen in covers(options, names):
        if any(options[index].kind != kinds[name] for index in chosen for name in options[index].workloads):
            value = brute(([options[index] for index in chosen], stocks, names, reserve), objective)
            values += [value] if value is not None else []
    answer = runner_up(*case, objective, choice)
    if answer is None:
        assert not values
        return
    other, delta = answer
    check_placement(case, other)
    assert other.objective == pytest.approx(min(values), rel=1e-9)
    assert delta == pytest.approx(other.objective - choice.objective)
    assert delta >= -1e-9 * choice.objective


@given(case=cases())
@settings(max_examples=100)
def test_a_shortfall_says_what_would_do(case: Case) -> None:
    options, stocks, names, reserve = case
    empty = [replace(stock, nodes=0) for stock in stocks]
    short = solve(options, empty, names, reserve)
    assert isinstance(short, Shortfall)
    covered = {name for option in options for name in option.workloads}
    assert short.without_option == tuple(name for name in names if name not in covered)
    assert short.least.keys() == covered
    for name, nodes in short.least.items():
        alone = [
            brute(([replace(one, workloads=(name,))], plenty(stocks), [name], reserve), "nodes")
            for one in options
            if name in one.workloads
        ]
        assert nodes == min(value for value in alone if value is not None)
    if short.without_option:
        assert short.nodes_needed is None
        assert not short.nodes_short
        return
    if len(names) > 1 and not list(covers(options, names)):
        return
    assert short.nodes_needed == brute((options, plenty(stocks), names, reserve), "nodes")
    assert sum(short.nodes_short.values()) == short.nodes_needed
    enough = [replace(stock, nodes=short.nodes_short[stock.hardware]) for stock in stocks]
    assert isinstance(solve(options, enough, names, reserve), Choice)


def plenty(stocks: Sequence[Stock]) -> list[Stock]:
    return [replace(stock, nodes=60) for stock in stocks]


def one_pool(pool: str, size: int, count: int, workload: str, *, spared: bool = True, hardware: str = "a") -> Option:
    return Option(pool, (workload,), f"TP{size} on {hardware}", (Need(pool, hardware, size, count, spared),))


def stock(nodes: int, name: str = "a") -> Stock:
    return Stock(name, nodes, 8, 2.0, 700.0)


def test_of_equal_options_the_first_is_taken() -> None:
    for count in range(2, 12):
        options = [one_pool(f"{name}{index}", 2, 4, name) for name in ("chat", "code") for index in range(count)]
        for objective in OBJECTIVES:
            choice = solve(options, [stock(16)], ["chat", "code"], 1, objective)
            assert isinstance(choice, Choice)
            assert choice.options == (0, count)


def test_of_equal_cost_fewer_nodes_are_taken() -> None:
    """A replica of half a node and its spare cost as much as one that fills a node, and take two."""
    halves, whole = one_pool("halves", 4, 1, "chat"), one_pool("whole", 8, 1, "chat", spared=False)
    choice = solve([halves, whole], [stock(16)], ["chat"], 1)
    assert isinstance(choice, Choice)
    assert (choice.options, choice.nodes, choice.objective) == ((1,), {"a": 1}, 8 * 2.0)


HARD = [one_pool("large", 4, 1, "batch", spared=False), one_pool("small", 1, 5, "chat")]
"""Five replicas of one accelerator, five spares: five on each of two nodes leave three accelerators, never four."""


def test_accelerators_that_do_not_pack_do_not_count() -> None:
    choice = solve(HARD, [stock(3)], ["batch", "chat"], 1, "nodes")
    assert isinstance(choice, Choice)
    assert (choice.nodes, choice.status) == ({"a": 3}, "optimal")
    check_placement((HARD, [stock(3)], ["batch", "chat"], 1), choice)
    short = solve(HARD, [stock(2)], ["batch", "chat"], 1, "nodes")
    assert isinstance(short, Shortfall)
    assert (short.least, short.nodes_needed, short.nodes_short) == ({"batch": 1, "chat": 2}, 3, {"a": 1})
    assert short.proved


def test_a_search_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "ROUNDS", 1)
    choice = solve(HARD, [stock(3)], ["batch", "chat"], 1, "nodes")
    assert isinstance(choice, Choice)
    assert choice.status == "limit"
    assert 0.0 < choice.gap < 1.0
    check_placement((HARD, [stock(3)], ["batch", "chat"], 1), choice)
    short = solve(HARD, [stock(2)], ["batch", "chat"], 1, "nodes")
    assert isinstance(short, Shortfall)
    assert not short.proved


def test_a_gap_is_kept() -> None:
    rng = np.random.default_rng(5)
    names = [f"w{index}" for index in range(8)]
    options = [
        one_pool(f"{name}.{index}", int(rng.choice([1, 2, 4])), int(rng.integers(3, 30)), name)
        for name in names
        for index in range(6)
    ]
    exact = solve(options, [stock(60)], names, 1, gap=0.0)
    loose = solve(options, [stock(60)], names, 1, gap=0.2)
    assert isinstance(exact, Choice)
    assert isinstance(loose, Choice)
    assert exact.gap == 0.0
    assert loose.gap <= 0.2
    assert exact.objective <= loose.objective * (1 + 1e-9)
    assert loose.objective <= exact.objective * 1.25 * (1 + 1e-9)
    check_placement((options, [stock(60)], names, 1), loose)


def test_a_pool_that_workloads_share_counts_once() -> None:
    both = Option("both", ("chat", "code"), "shared", (Need("both", "a", 4, 3, spared=True),))
    apart = [one_pool("chat", 4, 2, "chat"), one_pool("code", 4, 2, "code")]
    choice = solve([*apart, both], [stock(16)], ["chat", "code"], 1)
    assert isinstance(choice, Choice)
    assert choice.options == (2,)
    assert choice.objective == 4 * 4 * 2.0


def test_the_dearer_hardware_is_taken_where_it_needs_less() -> None:
    fast = replace(stock(4, "b"), price=3.0)
    options = [one_pool("slow", 4, 6, "chat"), one_pool("fast", 4, 3, "chat", hardware="b")]
    choice = solve(options, [stock(8), fast], ["chat"], 1)
    assert isinstance(choice, Choice)
    assert (choice.options, choice.objective) == ((1,), 4 * 4 * 3.0)
    assert choice.nodes == {"a": 0, "b": 4}
    scarce = solve(options, [stock(8), replace(fast, nodes=1)], ["chat"], 1)
    assert isinstance(scarce, Choice)
    assert scarce.options == (0,)


def test_without_prices_nodes_decide() -> None:
    free = replace(stock(16), price=0.0)
    choice = solve([one_pool("wide", 8, 3, "chat"), one_pool("thin", 4, 2, "chat")], [free], ["chat"], 1)
    assert isinstance(choice, Choice)
    assert (choice.options, choice.objective, choice.nodes_used) == ((1,), 0.0, 2)


@pytest.mark.parametrize(
    ("options", "objective", "message"),
    [
        ([one_pool("p", 4, 1, "chat")], "speed", "'speed' is no objective; it is one of cost, nodes, power"),
        ([one_pool("p", 4, 1, "chat", hardware="tpu")], "cost", "option 'p' wants 'tpu', which is not among"),
        ([one_pool("p", 4, 1, "mail")], "cost", "option 'p' covers 'mail', which is not among"),
        ([one_pool("p", 3, 1, "chat")], "cost", "3 accelerators does not divide a node of 8"),
        ([one_pool("p", 12, 1, "chat")], "cost", "12 accelerators is no multiple of a node of 8"),
        ([one_pool("p", 4, 1, "chat"), one_pool("p", 4, 1, "code")], "cost", "give each its own name"),
    ],
)
def test_contradictions_are_named(options: list[Option], objective: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(options, [stock(4)], ["chat", "code"], 1, objective)


def test_figures_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="no negative figure"):
        stock(-1)
    with pytest.raises(ValueError, match="at least one replica"):
        Need("p", "a", 1, 0, spared=True)
    need = Need("p", "a", 1, 1, spared=True)
    with pytest.raises(ValueError, match="name each of its pools once"):
        Option("o", ("chat",), "k", (need, need))


def test_a_search_out_of_branches_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the solver stops without an answer after a plan was placed, that plan stands, with its gap."""
    once = iter([programme.minimise])

    def stop(made: programme.Programme, cost: Floats, rows: Sequence[programme.Row], gap: float) -> programme.Solution:
        for run in once:
            return run(made, cost, rows, gap)
        return programme.Solution(None, 0.0, proved=False)

    monkeypatch.setattr(solving, "minimise", stop)
    choice = solve(HARD, [stock(3)], ["batch", "chat"], 1, "nodes")
    assert isinstance(choice, Choice)
    assert choice.status == "limit"
    assert 0.0 < choice.gap < 1.0
    short = solve(HARD, [stock(3)], ["batch", "chat"], 1, "nodes")
    assert isinstance(short, Shortfall)
    assert (short.proved, short.nodes_needed, short.least) == (False, None, {"batch": 1, "chat": 2})
