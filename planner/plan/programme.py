"""The programme: columns, rows and objective of the choice as arrays, and its solution by HiGHS."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.numeric import Floats, Ints
from planner.plan import highs
from planner.plan.options import Cap, Need, Option, Stock, caps

OBJECTIVES = ("cost", "nodes", "power")
"""What a plan may have least of: price of accelerators [USD/h], nodes used, power of accelerators [W]."""
TIE = 1e-3
"""Weight of all tie-breaks together, in units of the objective: one accelerator of the cheapest (or least hungry) kind.
Plans that differ by less count as equal."""
FINEST = 1e-4
"""Weight of the finest tie-break after scaling, well above the absolute gap of 1e-6 at which HiGHS stops."""
LARGEST_SCALE = 1e4
"""Most that the objective is multiplied by to get there; beyond it, order among equals is the solver's."""
NODE_LIMIT = 20_000
"""Branches of one solution. A limit on work, not on time, so that the same programme gives the same plan."""


@dataclass(frozen=True, slots=True)
class Way:
    """One cap of one need: what a 0/1 column of the programme stands for, or part of it."""

    option: int
    rank: int
    """Place of the need among those of its option."""
    need: Need
    cap: Cap
    stock: int

    @property
    def replicas(self) -> int:
        """Replicas, spares included."""
        return self.need.count + self.cap.spares

    @property
    def accelerators(self) -> int:
        """Accelerators of all replicas."""
        return self.need.size * self.replicas


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Bounds of one linear sum of columns."""

    columns: Sequence[int]
    weights: Sequence[float]
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Programme:
    """Mixed-integer programme of the choice.

    Columns, in this order: one per option (chosen or not), one per cap of a need that has several, then for each stock
    its shared nodes, and for each stock the nodes beyond it (held at zero unless the stock is taken as unlimited).
    """

    ways: tuple[tuple[Way, ...], ...]
    """What each of the 0/1 columns stands for; an option's own column carries its needs that have a single cap."""
    options: int
    """Number of options."""
    cost: Floats
    """Objective of each column with tie-breaks, scaled."""
    primary: Floats
    """Objective of each column without tie-breaks, in its own unit."""
    rows: tuple[Row, ...]
    high: Floats
    """Largest value of each column."""

    @property
    def shared(self) -> int:
        """First column of shared nodes; one for each stock follows."""
        return len(self.ways)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What HiGHS answers."""

    values: Ints | None
    """Value of each column; None where there is none."""
    bound: float
    """No plan has a smaller scaled objective."""
    proved: bool
    """Whether the answer, or that there is none, is proved within the gap."""


def _columns(options: Sequence[Option], stocks: Sequence[Stock], reserve: int) -> tuple[list[list[Way]], list[Row]]:
    """0/1 columns with their ways, and the rows that pick one cap for each need of a chosen option."""
    place = {stock.hardware: index for index, stock in enumerate(stocks)}
    ways: list[list[Way]] = [[] for _ in options]
    links: list[Row] = []
    for index, option in enumerate(options):
        for rank, need in enumerate(option.needs):
            if need.hardware not in place:
                message = f"option {option.key!r} wants {need.hardware!r}, which is not among {sorted(place)}"
                raise ValueError(message)
            at = place[need.hardware]
            several = [Way(index, rank, need, cap, at) for cap in caps(need, stocks[at].node_accelerators, reserve)]
            if len(several) == 1:
                ways[index] += several
                continue
            first = len(ways)
            ways += [[way] for way in several]
            links.append(Row([index, *range(first, len(ways))], [-1.0] + [1.0] * len(several), 0.0, 0.0))
    return ways, links


def _cover(options: Sequence[Option], workloads: Sequence[str]) -> list[Row]:
    """One row for each workload: exactly one of its options."""
    covering: dict[str, list[int]] = {name: [] for name in workloads}
    for index, option in enumerate(options):
        for name in option.workloads:
            if name not in covering:
                message = f"option {option.key!r} covers {name!r}, which is not among {list(covering)}"
                raise ValueError(message)
            covering[name].append(index)
    return [Row(chosen, [1.0] * len(chosen), 1.0, 1.0) for chosen in covering.values()]


def _nodes(ways: Sequence[Sequence[Way]], options: Sequence[Option], stocks: Sequence[Stock]) -> list[Row]:
    """Rows of each stock: accelerators of shared nodes, nodes that a cap takes, and the nodes there are."""
    held: list[dict[int, float]] = [{} for _ in stocks]
    alone: list[dict[int, float]] = [{} for _ in stocks]
    # Of the options that cover one workload at most one is chosen, so one row takes a need of each of them.
    wide: dict[tuple[int, str, int], dict[int, float]] = {}
    for column, several in enumerate(ways):
        for way in several:
            if way.cap.whole_nodes:
                alone[way.stock][column] = alone[way.stock].get(column, 0.0) + way.cap.whole_nodes
                continue
            held[way.stock][column] = held[way.stock].get(column, 0.0) + way.accelerators
            if way.cap.spares:
                row = wide.setdefault((way.stock, options[way.option].workloads[0], way.rank), {})
                row[column] = float(way.cap.least_nodes)
    rows = []
    for at, stock in enumerate(stocks):
        shared, beyond = len(ways) + at, len(ways) + len(stocks) + at
        weights = [*held[at].values(), -float(stock.node_accelerators)]
        rows.append(Row([*held[at], shared], weights, -np.inf, 0.0))
        weights = [*alone[at].values(), 1.0, -1.0]
        rows.append(Row([*alone[at], shared, beyond], weights, -np.inf, float(stock.nodes)))
    for (at, _, _), terms in wide.items():
        rows.append(Row([*terms, len(ways) + at], [*terms.values(), -1.0], -np.inf, 0.0))
    return rows


def _totals(ways: Sequence[Sequence[Way]], stocks: Sequence[Stock]) -> tuple[Floats, Floats, Floats]:
    """Price [USD/h], power [W] and nodes of each column."""
    price, power, nodes = (np.zeros(len(ways) + 2 * len(stocks)) for _ in range(3))
    for column, several in enumerate(ways):
        for way in several:
            price[column] += way.accelerators * stocks[way.stock].price
            power[column] += way.accelerators * stocks[way.stock].power
            nodes[column] += way.cap.whole_nodes
    nodes[len(ways) : len(ways) + len(stocks)] = 1.0
    return price, power, nodes


def _unit(figures: Iterable[float]) -> float:
    """Smallest positive figure, or 1."""
    return min((figure for figure in figures if figure > 0.0), default=1.0)


def _order(options: Sequence[Option], workloads: Sequence[str]) -> Floats:
    """Weight of each option in breaking ties: its rank among the options of its first workload.

    In all less than 1. Ranks of earlier workloads weigh a little more, so that (first, second) and (second, first)
    differ.
    """
    rank = dict.fromkeys(workloads, 0)
    place = {name: index for index, name in enumerate(workloads)}
    weights = np.zeros(len(options))
    for index, option in enumerate(options):
        name = option.workloads[0]
        weights[index] = rank[name] * (1.0 - 0.5 * place[name] / len(workloads))
        rank[name] += 1
    return weights / (1.0 + len(options))


def _scaled(primary: Floats, ties: Floats, unit: float, weight: float, order: Floats) -> Floats:
    """Objective with its tie-breaks, scaled so that the finest of them counts for the solver."""
    total = primary / unit + weight * ties + order
    finest = float(order[order > 0.0].min(initial=1.0))
    return total * min(LARGEST_SCALE, max(1.0, FINEST / finest))


def formulate(
    options: Sequence[Option], stocks: Sequence[Stock], workloads: Sequence[str], reserve: int, objective: str
) -> Programme:
    """Programme of the least plan by an objective of ``OBJECTIVES``.

    Ties are broken by nodes (``nodes``: by cost), then by the order of options. A node used costs ``TIE / 2`` over the
    most nodes that there can be; where nodes are counted, cost weighs at most half a node. The order of all options
    weighs less than ``TIE`` of that again.

    Raises ValueError for an unknown objective, for options that name hardware or workloads that are not given, and for
    replicas whose size fits no node.
    """
    if objective not in OBJECTIVES:
        message = f"{objective!r} is no objective; it is one of {', '.join(OBJECTIVES)}"
        raise ValueError(message)
    ways, links = _columns(options, stocks, reserve)
    rows = (*_cover(options, workloads), *links, *_nodes(ways, options, stocks))
    price, power, nodes = _totals(ways, stocks)
    primary = {"cost": price, "nodes": nodes, "power": power}[objective]
    most = _most_nodes(ways, workloads)
    order = np.zeros(len(primary))
    if objective == "nodes":
        ties, unit, weight = price, 1.0, 0.5 / (1.0 + _dearest(ways, price) * len(workloads))
        step = weight * TIE * _unit(stock.price for stock in stocks)
    else:
        figures = (stock.price if objective == "cost" else stock.power for stock in stocks)
        ties, unit, weight = nodes, _unit(figures), 0.5 * TIE / (1.0 + most)
        step = weight / 2.0
    order[: len(options)] = step * _order(options, workloads)
    return Programme(
        ways=tuple(tuple(several) for several in ways),
        options=len(options),
        cost=_scaled(primary, ties, unit, weight, order),
        primary=primary,
        rows=rows,
        high=np.repeat([1.0, float(most), 0.0], [len(ways), len(stocks), len(stocks)]),
    )


def _dearest(ways: Sequence[Sequence[Way]], price: Floats) -> float:
    """Most that one option can cost [USD/h]: its pools each at the dearest cap."""
    dearest: dict[int, dict[int, float]] = {}
    for column, several in enumerate(ways):
        for way in several:
            ranks = dearest.setdefault(way.option, {})
            ranks[way.rank] = max(ranks.get(way.rank, 0.0), float(price[column]))
    return max((sum(ranks.values()) for ranks in dearest.values()), default=0.0)


def _most_nodes(ways: Sequence[Sequence[Way]], workloads: Sequence[str]) -> int:
    """Nodes that no sensible plan exceeds: each workload by its widest option, each pool on nodes of its own."""
    widest: dict[int, dict[int, int]] = {}
    for way in (way for several in ways for way in several):
        ranks = widest.setdefault(way.option, {})
        ranks[way.rank] = max(ranks.get(way.rank, 0), way.cap.least_nodes + way.cap.whole_nodes)
    return max((sum(ranks.values()) for ranks in widest.values()), default=0) * len(workloads)


def minimise(programme: Programme, cost: Floats, rows: Sequence[Row], gap: float) -> Solution:
    """Solve by HiGHS: least ``cost`` (columns,) under the programme's rows and some more.

    Returns values of 0/1 columns and node counts, or none where the programme is infeasible or the branches ran out.
    """
    found = highs.minimise(cost, programme.high, [*programme.rows, *rows], gap, NODE_LIMIT)
    return Solution(found.values, found.bound, found.proved)
