"""Which replica goes on which node: an explicit placement, and the law that it keeps when nodes are lost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from planner.numeric import Ints
from planner.plan import highs
from planner.plan.options import Node

SEARCH_NODES = 500
"""Branches after which the exact search gives up: a limit on work, not on time, so that answers repeat."""
SEARCH_CELLS = 600
"""Pools times nodes up to which the exact search is tried at all."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Replicas of one pool that share nodes with other pools."""

    pool: str
    size: int
    """Accelerators of one replica, a divisor of those of a node."""
    replicas: int
    """Spares included."""
    cap: int
    """Most replicas on any one node."""


def least_shared_nodes(packs: Sequence[Pack], node_accelerators: int) -> int:
    """Nodes below which no placement can exist: by accelerators, and by each pool's cap.

    >>> least_shared_nodes([Pack("a", 4, 3, 1), Pack("b", 1, 5, 8)], 8)
    3
    """
    if not packs:
        return 0
    accelerators = sum(pack.size * pack.replicas for pack in packs)
    return max(-(-accelerators // node_accelerators), *(-(-pack.replicas // pack.cap) for pack in packs), 1)


def spread(packs: Sequence[Pack], nodes: int, node_accelerators: int) -> Ints | None:
    """Placement by hand: largest replicas first, each on the fewest-loaded node that its cap leaves open.

    Among nodes loaded alike the first is taken, so a pool goes round the nodes. Where each size divides the next larger
    one and no cap binds, the free part of each node is a multiple of the replica at hand, so this succeeds whenever the
    accelerators suffice. A cap can still stop it; then the answer is None.

    Returns
    -------
    (pools, nodes)
        Replicas of each pool on each node, or None.

    Examples
    --------
    >>> spread([Pack("a", 4, 3, 1), Pack("b", 1, 5, 8)], nodes=3, node_accelerators=8).tolist()
    [[1, 1, 1], [2, 2, 1]]

    """
    placed = np.zeros((len(packs), nodes), np.int64)
    load = np.zeros(nodes, np.int64)
    # Of pools of one size, those whose cap leaves the least room go first.
    order = sorted(range(len(packs)), key=lambda i: (-packs[i].size, packs[i].cap * nodes - packs[i].replicas, i))
    for row in order:
        pack = packs[row]
        for _ in range(pack.replicas):
            open_nodes = (placed[row] < pack.cap) & (load + pack.size <= node_accelerators)
            if not open_nodes.any():
                return None
            node = int(np.argmin(np.where(open_nodes, load, node_accelerators)))
            placed[row, node] += 1
            load[node] += pack.size
    return placed


def search(packs: Sequence[Pack], nodes: int, node_accelerators: int) -> Ints | None:
    """Placement by exact search, where the one by hand fails; None where there is none or the search gave up.

    A feasibility programme over replicas of each pool on each node, solved by HiGHS within ``SEARCH_NODES`` branches.
    Loads fall from node to node, which removes placements that differ only in the order of the nodes.

    Returns
    -------
    (pools, nodes)
        Replicas of each pool on each node, or None.

    """
    cells = len(packs) * nodes
    if cells > SEARCH_CELLS or sum(pack.size * pack.replicas for pack in packs) > nodes * node_accelerators:
        return None
    replicas = [float(pack.replicas) for pack in packs]
    rows = [_Row(range(at * nodes, (at + 1) * nodes), [1.0] * nodes, whole, whole) for at, whole in enumerate(replicas)]
    sizes = [float(pack.size) for pack in packs]
    loads = [range(node, cells, nodes) for node in range(nodes)]
    rows += [_Row(load, sizes, 0.0, float(node_accelerators)) for load in loads]
    for this, following in pairwise(loads):
        rows.append(_Row([*this, *following], [*sizes, *(-size for size in sizes)], 0.0, np.inf))
    high = np.repeat([float(pack.cap) for pack in packs], nodes)
    found = highs.minimise(np.zeros(cells), high, rows, 0.0, SEARCH_NODES)
    return None if found.values is None else found.values.reshape(len(packs), nodes)


class _Row(NamedTuple):
    """One row of the feasibility programme."""

    columns: Sequence[int]
    weights: Sequence[float]
    low: float
    high: float


def pack(packs: Sequence[Pack], most_nodes: int, node_accelerators: int) -> Ints | None:
    """Placement on the fewest nodes that were found to do, at most ``most_nodes``.

    Returns
    -------
    (pools, nodes)
        Replicas of each pool on each node; no node is empty. None where ``most_nodes`` do not suffice.

    Examples
    --------
    Ten replicas, at most five a node, fill five of the eight accelerators on both of two nodes, and leave no room for
    one of four; three nodes do, though two have the accelerators.

    >>> packs = [Pack("large", 4, 1, 2), Pack("small", 1, 10, 5)]
    >>> pack(packs, 2, 8) is None, pack(packs, 3, 8).shape
    (True, (2, 3))

    """
    least = least_shared_nodes(packs, node_accelerators)
    found, nodes = None, most_nodes
    for count in range(least, most_nodes + 1):
        found = spread(packs, count, node_accelerators)
        if found is not None:
            nodes = count
            break
    # What packs on some nodes packs on more, so the exact search only walks down from where the hand succeeded.
    while nodes >= least and (found is None or nodes > least):
        better = search(packs, nodes if found is None else nodes - 1, node_accelerators)
        if better is None:
            break
        nodes -= found is not None
        found = better
    return None if found is None else found[:, found.any(axis=0)]


def as_nodes(packs: Sequence[Pack], placed: Ints, hardware: str) -> tuple[Node, ...]:
    """Table of replicas (pools, nodes) as nodes.

    >>> as_nodes([Pack("a", 4, 3, 1)], np.array([[1, 2]]), "h100")[1].replicas
    (('a', 2),)
    """
    return tuple(
        Node(hardware, 1, tuple((item.pool, int(count)) for item, count in zip(packs, column, strict=True) if count))
        for column in placed.T
    )


def left_after_loss(placement: Iterable[Node], reserve: int) -> dict[str, int]:
    """Replicas of each pool that are left after the worst loss of ``reserve`` nodes, for each pool its own worst.

    The worst nodes of a pool are those that hold most of it, so no subset needs to be tried.

    >>> two = (Node("h100", 1, (("a", 2), ("b", 1))), Node("h100", 1, (("a", 1),)))
    >>> left_after_loss(two, 1)
    {'a': 1, 'b': 0}
    """
    held: dict[str, list[int]] = {}
    for node in placement:
        for pool, count in node.replicas:
            held.setdefault(pool, []).append(count)
    return {pool: sum(counts) - sum(sorted(counts, reverse=True)[:reserve]) for pool, counts in held.items()}


def faults(placement: Iterable[Node], sizes: Mapping[str, int], node_accelerators: Mapping[str, int]) -> list[str]:
    """Name the nodes of a placement that hold more than they have; empty where all is well.

    >>> faults([Node("h100", 1, (("a", 3),))], {"a": 4}, {"h100": 8})
    ['node 0 (h100) holds 12 accelerators of 8']
    """
    wrong = []
    for index, node in enumerate(placement):
        held = sum(sizes[pool] * count for pool, count in node.replicas)
        room = node.span * node_accelerators[node.hardware]
        if held > room:
            wrong.append(f"node {index} ({node.hardware}) holds {held} accelerators of {room}")
    return wrong


def nodes_of(placement: Iterable[Node]) -> Counter[str]:
    """Nodes used of each hardware.

    >>> nodes_of([Node("h100", 1, (("a", 2),)), Node("h100", 2, (("big", 1),))])
    Counter({'h100': 3})
    """
    used: Counter[str] = Counter()
    for node in placement:
        used[node.hardware] += node.span
    return used
