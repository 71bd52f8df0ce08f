"""The answer of ``simulate``. Apart from what makes it, so that other answers need not load a compiler."""

from planner.plan.predicted import Part, Predicted


class Observed(Part):
    """A latency as it was replayed [s]."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    at: float
    """At the percentile that the promise shows."""
    limit: float
    """The promise."""


class Simulated(Part):
    """What the replay of a workload shows."""

    requests: int
    """Requests that count: those after the pools have filled."""
    ttft: Observed
    tpot: Observed
    goodput_share: float
    """Share of requests that meet TTFT and TPOT together."""
    goodput_share_interval: tuple[float, float]
    """95 % confidence interval, from the means of consecutive parts of the time."""
    offered_rps: float
    """Arrivals [req/s]."""
    recomputed: float
    """Times that a request lost its cache and was computed again, on average."""
    rejected: int
    """Requests that no lane can hold."""


class SimulatedWorkload(Part):
    """A workload: what the closed forms say, and what the replay shows."""

    name: str
    predicted: Predicted
    simulated: Simulated
    holds: bool
    """Whether the replayed share is at least the promised one."""


class Simulation(Part):
    """The answer of ``simulate``."""

    schema_version: str
    planner_version: str
    scenario: str
    seed: int
    hours: float
    """Time that was replayed, the longest of all pools [h]."""
    requests: int
    """Requests of all pools."""
    left_out: tuple[str, ...]
    """Workloads that are not replayed: those with a deadline."""
    workloads: tuple[SimulatedWorkload, ...]
