"""The answer of ``recommend``: its JSON is a public contract, version 1.

Keys are never renamed inside a version, figures are in SI units, and there are no timings, so that the same scenario
gives the same bytes. Shares are numbers between 0 and 1, percentiles between 0 and 100, money is in US dollars.
"""

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from planner.plan.predicted import Part, Predicted

SCHEMA_VERSION: Literal["1"] = "1"
"""Version of every JSON answer."""
DIGITS = 6
"""Significant digits of a float in JSON: far below any band, far above the noise of the last bit."""

Decision = Literal["together", "split", "attention_expert_split"]
"""One pool; prefill and decode apart; attention and experts apart."""
Role = Literal["mixed", "prefill", "decode", "attention", "expert"]
"""What a pool does."""
Counts = Annotated[dict[str, int], AfterValidator(lambda counts: dict(sorted(counts.items())))]
"""Counts by name, in the order of the names."""


class ClusterUse(Part):
    """The cluster, and how much of it the plan takes."""

    nodes: int
    nodes_used: int
    """Nodes that the plan takes, spares included."""
    accelerators: int
    accelerators_used: int
    spare_nodes: int
    """Nodes of ``nodes_used`` that are reserve."""
    cost_per_hour: float
    """Cost of what is used [USD/h]."""
    power_watts: float | None
    """Power of the accelerators used, each with its share of its node [W]."""


class Signal(Part):
    """What to watch, and the value that makes the decision worth another look."""

    signal: str
    threshold: float
    unit: str
    """SI unit of the threshold; empty for a plain number."""
    why: str


class Layout(Part):
    """Degrees of parallelism of one replica: tp x pp x dp accelerators."""

    tp: int
    pp: int
    ep: int
    """Groups that experts are spread over."""
    dp: int
    """Attention data-parallel ranks inside the replica."""
    ffn: str
    """How feed-forward weights are laid out, for example ``1d`` (weight-stationary)."""


class Memory(Part):
    """Memory of one accelerator, by kind [B]."""

    weights: float
    kv: float
    activations: float
    reserve: float
    capacity: float


class Pool(Part):
    """Replicas of one kind. A pool that workloads share appears under each with the same ``id``."""

    id: str
    shared_with: tuple[str, ...]
    """Other workloads on the same pool."""
    role: Role
    hardware: str
    engine: str
    weights_dtype: str
    kv_dtype: str
    layout: Layout
    replicas: int
    """All that run, spares included."""
    spare_replicas: int
    accelerators_per_replica: int
    accelerators: int
    """replicas x accelerators_per_replica."""
    nodes: float
    """Nodes' worth of accelerators."""
    max_batch: int | None
    """Sequences that one replica decodes together."""
    token_budget: int | None
    """Most tokens of one engine step."""
    utilisation: float
    """Share of the time that a replica is busy."""
    load: float
    """Offered rate over the saturation rate."""
    answerable_below_rps: float
    """Rate below which percentiles have a value [req/s]."""
    memory: Memory


class Kv(Part):
    """Whether KV moves from prefill to decode, or is computed again."""

    decision: Literal["move", "recompute", "none"]
    break_even_bandwidth: float | None
    """Bandwidth above which moving is faster [B/s]."""
    link_bandwidth: float | None
    """Bandwidth there is [B/s]."""
    bytes_per_token: float


class NodeLost(Part):
    """After one node is lost, before anything is repaired."""

    goodput_share: float | None
    capacity_share: float
    """Share of the replicas' capacity that is left."""
    requests_lost: float
    """Requests in flight on a node."""


class Failure(Part):
    """What failures do."""

    one_node_lost: NodeLost
    availability: float | None
    """Share of the time that the promise holds; null where no failure rate is known."""


class Operations(Part):
    """How the pools are run; null until it is modelled."""

    router: dict[str, JsonValue] | None
    admission: dict[str, JsonValue] | None
    migration: dict[str, JsonValue] | None
    startup: dict[str, JsonValue] | None
    scaling: dict[str, JsonValue] | None


class Cost(Part):
    """What it costs [USD]; the cost of a shared pool is split by accelerator-seconds used."""

    per_hour: float
    per_million_output_tokens: float | None
    """With the tokens of the whole day."""
    per_request: float | None
    per_successful_task: float | None


class WorkloadPlan(Part):
    """The plan of one workload."""

    name: str
    model: str
    decision: Decision
    reasons: tuple[str, ...]
    """Why this plan, the weightiest first."""
    revisit_when: tuple[Signal, ...]
    pools: tuple[Pool, ...]
    predicted: Predicted
    kv: Kv
    failure: Failure
    operations: Operations
    cost: Cost


class Candidates(Part):
    """How many candidates were tried, and why some are out; reasons overlap."""

    tried: int
    rejected: Counts


class RunnerUp(Part):
    """The best plan that differs in kind."""

    objective: float
    """Its objective, in the objective's SI unit."""
    delta: float
    """Its objective minus that of the plan."""
    changes: tuple[str, ...]
    probability: float
    """Probability that it is the cheaper one once true step times are known."""


class Sensitivity(Part):
    """How the objective answers to one input."""

    input: str
    elasticity: float
    """Relative change of the objective over relative change of the input."""
    flips_at: float | None
    """The choice changes where the input is this many times its value; null where no such point was found."""


class Change(Part):
    """A change of one field of the scenario. In JSON the ends are ``from`` and ``to``."""

    field: str
    from_: float | str | None = Field(validation_alias="from", serialization_alias="from")
    to: float | str | None
    unit: str
    """SI unit; empty for a plain number or a name."""


class Infeasible(Part):
    """A workload without a plan: what binds, and the nearest changes that would free it."""

    workload: str | None
    """Null where the cluster as a whole binds."""
    binding: str
    """A rejection reason, or a metric."""
    value: float | None
    """Best value of the binding figure that any candidate reaches."""
    limit: float | None
    nearest: tuple[Change, ...]


class Assumption(Part):
    """An input that is not measured on this hardware and engine, or was not given."""

    name: str
    value: float | str
    unit: str
    source: str


class CheckItem(Part):
    """A budget, and the figure held against it. Keys without a value are left out."""

    metric: str
    workload: str | None = Field(default=None, exclude_if=lambda value: value is None)
    severity: Literal["fail", "warn"]
    min: float | None = Field(default=None, exclude_if=lambda value: value is None)
    max: float | None = Field(default=None, exclude_if=lambda value: value is None)
    value: float | None
    margin: float | None
    """Distance to the limit over the limit; negative where it is missed."""
    met: bool
    location: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """File and line of the budget."""


class Solver(Part):
    """How the choice was proven."""

    status: str
    gap: float | None
    """Relative distance to the proven bound."""


class Recommendation(Part):
    """The answer of ``recommend``."""

    schema_version: Literal["1"]
    planner_version: str
    scenario: str
    feasible: bool
    """Whether every workload has a plan that holds its promise."""
    within_budgets: bool
    """Whether no budget of severity ``fail`` is missed."""
    cluster: ClusterUse
    workloads: tuple[WorkloadPlan, ...]
    candidates: Candidates
    runner_up: RunnerUp | None
    sensitivities: tuple[Sensitivity, ...]
    infeasible: tuple[Infeasible, ...]
    assumptions: tuple[Assumption, ...]
    checks: tuple[CheckItem, ...]
    solver: Solver


def rounded(value: JsonValue) -> JsonValue:
    """Round every float of a JSON value to six significant digits; negative zero becomes zero.

    >>> rounded({"p95": 0.41234567, "nodes": 16, "none": None, "band": [-0.0, 1e9 / 3]})
    {'p95': 0.412346, 'nodes': 16, 'none': None, 'band': [0.0, 333333000.0]}
    """
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") + 0.0
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value


def to_json(answer: Part) -> str:
    """Write an answer as JSON: keys in the contract's order, floats by ``rounded``, the same bytes each time.

    Raises
    ------
    ValueError
        If a figure is not finite.

    """
    return json.dumps(rounded(answer.model_dump(mode="json")), indent=2, ensure_ascii=False, allow_nan=False)
