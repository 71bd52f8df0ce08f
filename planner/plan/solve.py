"""The choice: one option for each workload, placed on nodes and proved to be the best; the runner-up; or why not.

The programme knows accelerators and caps; whether replicas fit node by node is settled afterwards by packing. A plan
that does not pack on the nodes that the programme gave it is cut off, and the programme is solved again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.numeric import Floats, Ints
from planner.plan.options import Choice, Node, Option, Shortfall, Stock, caps
from planner.plan.packing import Pack, as_nodes, least_shared_nodes, pack
from planner.plan.programme import Programme, Row, Way, formulate, minimise

ROUNDS = 50
"""Most times that the programme is solved again because a plan did not pack."""
LARGE = 1500
"""Columns from which ``LARGE_GAP`` is the default gap; below it the best plan is proved."""
LARGE_GAP = 0.01
SHORT_GAP = 0.05
"""Gap of the nodes to add in large programmes: few nodes, hence slow to prove."""
EXACT = 1e-6
"""Relative gaps below this are rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A plan with its placement."""

    ways: tuple[Way, ...]
    values: Ints
    """Columns of the programme, with the nodes that the placement takes."""
    placement: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The outcome of a search."""

    plan: _Placed | None
    value: float
    gap: float
    proved: bool


def _packs(ways: Sequence[Way], stock: int) -> list[Pack]:
    """Pools that share nodes of a stock."""
    return [
        Pack(way.need.pool, way.need.size, way.replicas, way.cap.cap)
        for way in ways
        if way.stock == stock and not way.cap.whole_nodes
    ]


def _place(
    programme: Programme, stocks: Sequence[Stock], values: Ints, *, unlimited: bool
) -> tuple[_Placed | None, list[Row]]:
    """Placement of a plan where one fits, and the rows that the programme lacked."""
    columns = [column for column in range(programme.shared) if values[column]]
    ways = tuple(way for column in columns for way in programme.ways[column])
    counts, cuts, nodes = values.copy(), [], list[Node]()
    fits = True
    for at, stock in enumerate(stocks):
        alone = [way for way in ways if way.stock == at and way.cap.whole_nodes]
        nodes += [
            Node(stock.hardware, way.need.size // stock.node_accelerators, ((way.need.pool, 1),))
            for way in alone
            for _ in range(way.replicas)
        ]
        taken = sum(way.cap.whole_nodes for way in alone)
        most = int(programme.high[programme.shared + at]) if unlimited else stock.nodes - taken
        packs = _packs(ways, at)
        placed = pack(packs, most, stock.node_accelerators) if packs else np.zeros((0, 0), np.int64)
        needed = most + 1 if placed is None else placed.shape[1]
        counts[programme.shared + at] = needed
        counts[programme.shared + len(stocks) + at] = max(0, needed + taken - stock.nodes)
        if needed > values[programme.shared + at]:
            # All of these columns together take more nodes; with any of them missing the row says nothing.
            own = [column for column in columns if any(way.stock == at for way in programme.ways[column])]
            row = Row(
                [*own, programme.shared + at], [-float(needed)] * len(own) + [1.0], needed * (1.0 - len(own)), np.inf
            )
            cuts.append(row)
        if placed is None:
            fits = False
        else:
            nodes += as_nodes(packs, placed, stock.hardware)
    return (_Placed(ways, counts, tuple(nodes)) if fits else None), cuts


def _search(programme: Programme, stocks: Sequence[Stock], cost: Floats, rows: Sequence[Row], gap: float) -> _Found:
    """Least plan that packs: solve, pack, cut, and again."""
    unlimited = bool(programme.high[-1] > 0.0)
    best, value, distance = None, np.inf, np.inf
    cuts, bound = list(rows), 0.0  # nothing that is counted is negative
    for _ in range(ROUNDS):
        solution = minimise(programme, cost, cuts, gap)
        if solution.values is None:
            # Cuts only take away plans that do not pack, so the best that packed, if any did, is the best of all.
            return _Found(best, value, 0.0 if solution.proved else distance, solution.proved)
        bound = max(bound, solution.bound)
        plan, more = _place(programme, stocks, solution.values, unlimited=unlimited)
        if plan is not None and float(cost @ plan.values) < value:
            best, value = plan, float(cost @ plan.values)
        if best is not None:
            distance = max(0.0, value - bound) / max(value, EXACT)
        if not more or distance <= max(gap, EXACT):
            proved = solution.proved and distance <= max(gap, EXACT)
            return _Found(best, value, distance if distance > EXACT else 0.0, proved)
        cuts += more
    return _Found(best, value, distance, proved=False)


def _gap(programme: Programme, gap: float | None) -> float:
    if gap is not None:
        return gap
    return LARGE_GAP if programme.shared >= LARGE else 0.0


def _choice(programme: Programme, stocks: Sequence[Stock], found: _Found) -> Choice | None:
    if found.plan is None:
        return None
    plan = found.plan
    taken = dict.fromkeys((stock.hardware for stock in stocks), 0)
    for node in plan.placement:
        taken[node.hardware] += node.span
    return Choice(
        options=tuple(index for index in range(programme.options) if plan.values[index]),
        caps={way.need.pool: way.cap.cap for way in plan.ways},
        spares={way.need.pool: way.cap.spares for way in plan.ways},
        nodes=taken,
        placement=plan.placement,
        objective=float(programme.primary @ plan.values),
        status="optimal" if found.proved else "limit",
        gap=found.gap,
    )


def _check(options: Sequence[Option]) -> None:
    """Refuse pool names that two options use which could be chosen together."""
    users: dict[str, set[str]] = {}
    for option in options:
        for need in option.needs:
            users[need.pool] = users.get(need.pool, set(option.workloads)) & set(option.workloads)
    if clash := sorted(pool for pool, common in users.items() if not common):
        message = f"pools {clash} belong to options that can be chosen together; give each its own name"
        raise ValueError(message)


def solve(
    options: Sequence[Option],
    stocks: Sequence[Stock],
    workloads: Sequence[str],
    reserve: int,
    objective: str = "cost",
    gap: float | None = None,
) -> Choice | Shortfall:
    """Choose one option for each workload, and place its replicas, at the least objective.

    Parameters
    ----------
    options
        Ways to serve the workloads; ties are broken by their order.
    stocks
        Nodes at hand, one entry for each kind of hardware.
    workloads
        Names; each is covered by exactly one chosen option.
    reserve
        Nodes that may be lost, whichever they are, while every spared pool keeps its ``count``.
    objective
        ``cost`` [USD/h], ``nodes`` or ``power`` [W].
    gap
        Relative distance to the best plan at which the search may stop; by default 0, and 0.01 for large programmes.

    Returns
    -------
    Choice or Shortfall
        A plan, or why there is none.

    Raises
    ------
    ValueError
        Where the input contradicts itself: unknown objective, hardware or workload, a replica that fits no node, a
        pool name used twice.

    Examples
    --------
    Three replicas of TP4 beat two of TP8: with one node in reserve they take 4 x 4 accelerators, not 3 x 8.

    >>> from planner.plan.options import Need
    >>> small = Option("a", ("chat",), "TP4", (Need("a", "h100", 4, 3, True),))
    >>> large = Option("b", ("chat",), "TP8", (Need("b", "h100", 8, 2, True),))
    >>> choice = solve([large, small], [Stock("h100", 16, 8, price=2.5, power=1000.0)], ["chat"], reserve=1)
    >>> choice.options, choice.objective, choice.spares, choice.nodes
    ((1,), 40.0, {'a': 1}, {'h100': 4})

    """
    _check(options)
    programme = formulate(options, stocks, workloads, reserve, objective)
    covered = {name for option in options for name in option.workloads}
    missing = tuple(name for name in workloads if name not in covered)
    proved = True
    if not missing:
        found = _search(programme, stocks, programme.cost, (), _gap(programme, gap))
        choice = _choice(programme, stocks, found)
        if choice is not None:
            return choice
        proved = found.proved
    return _shortfall(options, stocks, workloads, reserve, missing, proved=proved)


def runner_up(
    options: Sequence[Option],
    stocks: Sequence[Stock],
    workloads: Sequence[str],
    reserve: int,
    objective: str,
    choice: Choice,
    gap: float | None = None,
) -> tuple[Choice, float] | None:
    """Best plan that serves at least one workload by another ``kind`` than ``choice`` does.

    Returns it with its objective minus that of ``choice``, or None where there is no such plan. Where a gap is allowed
    the difference may be below zero by as much.

    Examples
    --------
    >>> from planner.plan.options import Need
    >>> small = Option("a", ("chat",), "TP4", (Need("a", "h100", 4, 3, True),))
    >>> large = Option("b", ("chat",), "TP8", (Need("b", "h100", 8, 2, True),))
    >>> case = [large, small], [Stock("h100", 16, 8, price=2.5, power=1000.0)], ["chat"], 1, "cost"
    >>> other, delta = runner_up(*case, solve(*case))
    >>> other.options, delta
    ((0,), 20.0)

    """
    programme = formulate(options, stocks, workloads, reserve, objective)
    kinds = {name: options[index].kind for index in choice.options for name in options[index].workloads}
    same = [sum(kinds[name] == option.kind for name in option.workloads) for option in options]
    columns = [index for index, count in enumerate(same) if count]
    differs = Row(columns, [float(same[index]) for index in columns], -np.inf, len(workloads) - 1.0)
    other = _choice(programme, stocks, _search(programme, stocks, programme.cost, [differs], _gap(programme, gap)))
    return None if other is None else (other, other.objective - choice.objective)


def _layouts(option: Option, stocks: Sequence[Stock], reserve: int) -> list[list[tuple[int, int, list[Pack]]]]:
    """For each stock that an option uses, its ways: nodes at least, nodes of whole replicas, and pools that share."""
    size = {stock.hardware: stock.node_accelerators for stock in stocks}
    ways = []
    for name in dict.fromkeys(need.hardware for need in option.needs):
        needs = [need for need in option.needs if need.hardware == name]
        one = []
        for taken in product(*(caps(need, size[name], reserve) for need in needs)):
            pairs = list(zip(needs, taken, strict=True))
            whole = sum(cap.whole_nodes for cap in taken)
            packs = [Pack(need.pool, need.size, need.count + c.spares, c.cap) for need, c in pairs if not c.whole_nodes]
            one.append((whole + least_shared_nodes(packs, size[name]), whole, packs))
        ways.append(sorted(one, key=lambda way: way[0]))
    return ways


def _least_alone(option: Option, stocks: Sequence[Stock], reserve: int, bar: float) -> float:
    """Least nodes of one option on an empty cluster without limit; ``bar`` where it takes no fewer than that."""
    size = {stock.hardware: stock.node_accelerators for stock in stocks}
    ways = _layouts(option, stocks, reserve)
    if sum(one[0][0] for one in ways) >= bar:
        return bar
    total = 0.0
    for name, one in zip(dict.fromkeys(need.hardware for need in option.needs), ways, strict=True):
        least = np.inf
        for lower, whole, packs in one:
            if lower >= least:
                break
            # As many nodes as all pools take apart always do.
            apart = sum(-(-one_pool.replicas // one_pool.cap) for one_pool in packs)
            placed = pack(packs, apart, size[name]) if packs else np.zeros((0, 0))
            least = min(least, whole + (apart if placed is None else placed.shape[1]))
        total += least
    return min(total, bar)


def _shortfall(
    options: Sequence[Option],
    stocks: Sequence[Stock],
    workloads: Sequence[str],
    reserve: int,
    missing: tuple[str, ...],
    *,
    proved: bool,
) -> Shortfall:
    """Say what is missing: workloads without options, or nodes."""
    by_kind: dict[str, dict[tuple[str, ...], int]] = {name: {} for name in workloads}
    for option in options:
        kind = tuple(dict.fromkeys(need.hardware for need in option.needs))
        bar = max(by_kind[name].get(kind, np.inf) for name in option.workloads)
        nodes = _least_alone(option, stocks, reserve, bar)
        for name in option.workloads:
            by_kind[name][kind] = int(min(by_kind[name].get(kind, nodes), nodes))
    alone = {name: min(kinds.values()) for name, kinds in by_kind.items() if kinds}
    if missing:
        return Shortfall(missing, alone, None, {}, proved, by_kind)
    bare = formulate(options, stocks, workloads, reserve, "nodes")
    first = len(bare.high) - len(stocks)
    high = bare.high.copy()
    high[first:] = high[bare.shared]
    free = replace(bare, high=high)
    fewest = _search(free, stocks, free.cost, (), _gap(free, None))
    needed = None if fewest.plan is None else round(float(free.primary @ fewest.plan.values))
    # Nodes to add count first; among equals, the fewest nodes in all.
    heavy = free.primary.copy()
    heavy[first:] += float(high[first:].sum() + 1.0)
    gap = SHORT_GAP if free.shared >= LARGE else 0.0
    added = fewest if len(stocks) == 1 else _search(free, stocks, heavy, (), gap)
    extra = np.zeros(0, np.int64) if added.plan is None else added.plan.values[first:]
    short = {stock.hardware: int(count) for stock, count in zip(stocks, extra, strict=False)}
    return Shortfall((), alone, needed, short, proved, by_kind)
