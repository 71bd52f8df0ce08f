"""The answer of ``explain``: where the milliseconds and bytes of one workload's plan go, and what lies next to it.

Seconds and bytes are of one replica, or of one accelerator where a field says so.
"""

from typing import Literal

from planner.plan.answer import Decision, Layout, Role
from planner.plan.predicted import Part


class OperatorTime(Part):
    """Time of one operator in one pass, booked to the resource that binds it [s]: the sum is its whole time."""

    operator: str
    compute: float
    memory: float
    network: float
    overhead: float
    """Kernel launches, and what an engine adds once a step."""
    count: int
    """Calls in one pass; the times are of all of them."""

    @property
    def total(self) -> float:
        """Whole time of the operator [s]."""
        return self.compute + self.memory + self.network + self.overhead


class Pass(Part):
    """One pass of a replica: a decode step at the operating point, or the prefill of one mean prompt."""

    sequences: float
    """Sequences in the pass."""
    tokens: float
    """New tokens of the pass."""
    context: float
    """Mean tokens already in the cache of each sequence."""
    seconds: float
    operators: tuple[OperatorTime, ...]


class AcceleratorMemory(Part):
    """Memory of one accelerator, by kind [B]."""

    weights: float
    kv: float
    activations: float
    reserve: float
    adapters: float
    capacity: float


class TtftParts(Part):
    """Mean time to first token, in parts [s]."""

    wait: float | None
    """In the queue; null where the load is 0.97 or more."""
    step_residual: float
    """What is left of the step in flight."""
    prefill: float
    transfer: float
    """Of KV, from prefill to decode."""


class ExplainedPool(Part):
    """One pool of a plan."""

    role: Role
    hardware: str
    engine: str
    weights_dtype: str
    kv_dtype: str
    layout: Layout
    replicas: int | None
    """Null where no number of replicas holds the promise."""
    accelerators_per_replica: int
    decode: Pass | None
    """Null for a pool that does not decode, or that cannot be loaded."""
    prefill: Pass | None
    """Null for a pool that does not prefill, or that cannot be loaded."""
    memory: AcceleratorMemory | None
    """Null for a pool that cannot be loaded."""


class Variant(Part):
    """The chosen plan of a workload, or a neighbour that differs from it in one thing."""

    change: str
    """How it differs from the chosen plan, for example ``TP halved``; ``chosen`` for the plan itself."""
    decision: Decision
    pools: tuple[ExplainedPool, ...]
    ttft: TtftParts | None
    """Null for a deadline, or where the variant cannot be loaded."""
    tpot: float | None
    """Mean [s]."""
    goodput_share: float | None
    accelerators: int | None
    """Accelerators of all pools; null where the variant is out."""
    cost_per_hour: float | None
    rejected: tuple[str, ...]
    """Names of the reasons why it is out; empty where it is a plan."""


class Basis(Part):
    """An input of the explanation, and what it rests on."""

    name: str
    value: float | str
    unit: str
    basis: Literal["measured", "published", "assumed"]
    source: str


class Explanation(Part):
    """The answer of ``explain``."""

    schema_version: Literal["1"]
    planner_version: str
    scenario: str
    workload: str
    model: str
    chosen: Variant
    neighbours: tuple[Variant, ...]
    assumptions: tuple[Basis, ...]
