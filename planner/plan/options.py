"""What the choice is about: stocks of nodes, pools that want replicas, options that bundle them, the plan chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stock:
    """Nodes of one kind that may be used."""

    hardware: str
    """Name of the hardware, unique among the stocks."""
    nodes: int
    """Nodes at hand."""
    node_accelerators: int
    """Accelerators of one node."""
    price: float
    """Price of one accelerator [USD/h]."""
    power: float
    """Power of one accelerator with its share of the node [W]."""

    def __post_init__(self) -> None:
        """Refuse stocks that make no sense."""
        if self.nodes < 0 or self.node_accelerators < 1 or self.price < 0 or self.power < 0:
            message = f"{self} must have no negative figure and at least one accelerator a node"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Need:
    """One pool of an option."""

    pool: str
    """Name of the pool; options that can be chosen together must not use the same name."""
    hardware: str
    """Name of a stock."""
    size: int
    """Accelerators of one replica: a divisor of those of a node, or a multiple (whole nodes)."""
    count: int
    """Replicas that the promise takes, without spares; at least one."""
    spared: bool
    """Whether ``count`` replicas must be left after the loss of the reserve (interactive work)."""

    def __post_init__(self) -> None:
        """Refuse pools that make no sense."""
        if self.size < 1 or self.count < 1:
            message = f"{self} must have at least one replica of at least one accelerator"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Option:
    """A way to serve one workload, or several that share its pools."""

    key: str
    """Name of the option."""
    workloads: tuple[str, ...]
    """Workloads that it covers, each wholly."""
    kind: str
    """What a person would call a different plan, for example ``chat: together TP4``."""
    needs: tuple[Need, ...]

    def __post_init__(self) -> None:
        """Refuse options that cover nothing or name a pool twice."""
        if not self.workloads or len({need.pool for need in self.needs}) < len(self.needs):
            message = f"option {self.key!r} must cover a workload and name each of its pools once"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Cap:
    """One way to spread a pool: the most replicas that a single node may hold, and what follows from it."""

    cap: int
    """Most replicas of the pool on any one node; 1 where a replica takes whole nodes."""
    spares: int
    """Replicas beyond the pool's count."""
    least_nodes: int
    """Fewest shared nodes that hold all replicas at this cap; 0 where replicas take whole nodes."""
    whole_nodes: int
    """Nodes taken alone; 0 where replicas share nodes."""


def caps(need: Need, node_accelerators: int, reserve: int) -> tuple[Cap, ...]:
    """Ways to spread a pool that no other way beats, smallest cap first.

    At most ``cap`` replicas on each node means at most ``reserve * cap`` lost with any ``reserve`` nodes, hence as many
    spares, and then ``count + reserve * cap <= cap * n`` needs ``n >= count / cap + reserve`` nodes. A larger cap costs
    spares and saves nodes, so of caps with equal nodes only the smallest is kept. Losing one node loses one replica of
    those that span nodes, so they take ``reserve`` spares. Without spares there is nothing to weigh: the node's own
    limit is the only cap.

    Raises ValueError where ``size`` neither divides a node nor is a multiple of it.

    Examples
    --------
    Four replicas of two accelerators on nodes of eight, one node in reserve: one a node costs one spare and takes five
    nodes, two a node cost two spares and take three nodes.

    >>> need = Need("chat", "h100", size=2, count=4, spared=True)
    >>> [(way.cap, way.spares, way.least_nodes) for way in caps(need, 8, reserve=1)]
    [(1, 1, 5), (2, 2, 3), (4, 4, 2)]

    """
    size, count = need.size, need.count
    lost = reserve if need.spared else 0
    if size >= node_accelerators:
        if size % node_accelerators:
            message = f"a replica of {size} accelerators is no multiple of a node of {node_accelerators}"
            raise ValueError(message)
        return (Cap(1, lost, 0, (count + lost) * size // node_accelerators),)
    if node_accelerators % size:
        message = f"a replica of {size} accelerators does not divide a node of {node_accelerators}"
        raise ValueError(message)
    most = node_accelerators // size
    if not lost:
        return (Cap(most, 0, -(-count // most), 0),)
    ways: list[Cap] = []
    for cap in range(1, min(most, count) + 1):
        nodes = -(-count // cap) + lost
        if not ways or nodes < ways[-1].least_nodes:
            ways.append(Cap(cap, lost * cap, nodes, 0))
    return tuple(ways)


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a placement, or the nodes of one replica that spans several."""

    hardware: str
    span: int
    """Nodes: 1, or those of the one replica that takes them whole."""
    replicas: tuple[tuple[str, int], ...]
    """Pools and how many replicas of each are here; the loss of any of the ``span`` nodes loses them all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The plan chosen."""

    options: tuple[int, ...]
    """Indices into the options given, rising."""
    caps: Mapping[str, int]
    """For each pool, the most replicas on any one node; 1 where a replica takes whole nodes."""
    spares: Mapping[str, int]
    """For each pool, the replicas beyond the need's ``count``."""
    nodes: Mapping[str, int]
    """Nodes used of each stock, in the order of the stocks."""
    placement: tuple[Node, ...]
    """Where each replica goes."""
    objective: float
    """The objective [USD/h, nodes or W], free of tie-breaks."""
    status: str
    """``optimal``: proved within the gap asked for; ``limit``: the search ended early, ``gap`` says how far off."""
    gap: float
    """Proved distance from the best plan, relative to the objective with its tie-breaks."""

    @property
    def nodes_used(self) -> int:
        """Nodes used, of all stocks."""
        return sum(self.nodes.values())


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why there is no plan."""

    without_option: tuple[str, ...]
    """Workloads that no option covers."""
    least: Mapping[str, int]
    """For each workload with an option, the least nodes of any one option that covers it, however large the stock."""
    nodes_needed: int | None
    """Least nodes that carry all workloads if every stock were unlimited; None where a workload has no option."""
    nodes_short: Mapping[str, int]
    """The fewest nodes to add, of each stock, in the order of the stocks; empty where a workload has no option.
    Within 5 % of the fewest where the programme is large."""
    proved: bool
    """False where the search ended early, so that a plan may exist after all."""
    by_kind: Mapping[str, Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    """``least`` of each workload apart for the stocks whose nodes an option takes."""
