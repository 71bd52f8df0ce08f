"""What a scenario says: a cluster, its models, its workloads and their promises."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.errors import shorten
from planner.spec.budget import Budget
from planner.spec.card import Card, Name
from planner.spec.complaints import did_you_mean
from planner.spec.lengths import Lengths, RequestLengths
from planner.spec.misfit import Misfit, misfit
from planner.spec.model import KvFormat, NumberFormat
from planner.spec.text import Location
from planner.units import Bandwidth, Duration, EnergyPrice, Money, Rate, Seconds, TimeOfDay, TokenRate

__all__ = ["Lengths", "RequestLengths"]

Fraction = Annotated[float, Field(ge=0, le=1)]
"""A plain number between 0 and 1."""
Weight = Annotated[float, Field(ge=0, le=1e6, examples=[1.0])]
"""Weight of an hour."""
Hours = Annotated[tuple[Weight, ...], Field(min_length=24, max_length=24)]
"""One number for each hour of the day, from midnight."""
Few = Annotated[int, Field(gt=0, le=10_000)]
"""A count of what a person lists or a machine room holds."""
Many = Annotated[int, Field(gt=0, le=1_000_000)]
"""A count of what one accelerator has in hand."""
Dispersion = Annotated[float, Field(gt=1e-6, le=1e6, examples=[1.5])]
"""Variance over mean of counts."""
Offered = Annotated[Rate, Field(ge=1e-6, le=1e7)]
"""Requests a second, from one in ten days to more than any service has [req/s]."""
Latency = Annotated[Seconds, Field(gt=0, le=86_400)]
"""A limit that one request may have [s]."""
MONTH = 30 * 86_400
"""Longest time that work may take [s]."""
FAINTEST = 1e-6
"""Least weight that the busiest hour of a profile may have."""


class Burstiness(Card):
    """How uneven arrivals are: variance over mean of the counts in windows of three lengths (1 for Poisson)."""

    dispersion_1s: Dispersion = 1.0
    dispersion_10s: Dispersion = 1.0
    dispersion_60s: Dispersion = 1.0
    measured_rate: Offered | None = None
    """Mean rate at which the dispersion was measured; the offered peak rate where absent.

    A trace of a lower rate is scaled up by laying copies over each other, which leaves the dispersion as it is; one of
    a higher rate is thinned, which takes it towards 1."""


class Traffic(Card):
    """How many requests arrive, and when."""

    rate: Offered
    """24-hour mean [req/s]."""
    profile: Hours | None = None
    """Weight of each hour; only ratios matter."""
    peak_to_mean: float = Field(default=1.0, ge=1, le=24, examples=[1.5])
    """Busiest hour over the mean, where there is no profile."""
    burstiness: Burstiness = Burstiness()

    @model_validator(mode="after")
    def _profile_is_positive(self) -> Self:
        if self.profile is not None:
            if self.peak_to_mean != 1.0:
                raise ValueError("profile and peak_to_mean exclude each other: leave one out")
            if max(self.profile) < FAINTEST:
                says = f"the busiest hour has a weight of {max(self.profile):g}, below {FAINTEST:g}; only ratios matter"
                raise misfit([Misfit(("profile",), f"{says}, for example profile: [{', '.join(['1.0'] * 24)}]")])
        return self


class Batch(Card):
    """Deadline work: a number of documents once a day."""

    documents: int = Field(gt=0, le=10**12, examples=[1_000_000])
    """Requests of one day's run."""


class Promise(Card):
    """What the platform has promised: both limits for a share of the requests, or a deadline."""

    ttft: Latency | None = Field(default=None, examples=["500 ms"])
    """Time to first token [s]."""
    tpot: Latency | None = Field(default=None, examples=["50 ms"])
    """(last token - first token) / (output tokens - 1) [s]."""
    share: Fraction = Field(default=0.95, gt=0, lt=1, examples=[0.95])
    """Share of requests that must meet both."""
    percentile: float | None = Field(default=None, gt=0, lt=100, examples=[95])
    """Percentile to display; the share where absent."""
    deadline: Duration | None = Field(default=None, gt=0, le=MONTH)
    """Time from ``start`` until all documents must be done [s]."""
    start: TimeOfDay | None = Field(default=None, examples=["22:00"])
    """When a deadline run starts (quoted: "22:00")."""

    @model_validator(mode="after")
    def _latency_or_deadline(self) -> Self:
        interactive, batch = self.ttft and self.tpot, self.deadline and self.start is not None
        if bool(interactive) == bool(batch) or (batch and (self.ttft or self.tpot)):
            raise ValueError(
                "give ttft and tpot, or deadline and start, for example {ttft: 500 ms, tpot: 50 ms, share: 0.95}"
            )
        return self


class Sharing(Card):
    """What requests have in common."""

    hit_rate: Fraction = 0.0
    """Share of the input tokens found in the cache, at the capacity that the platform has."""
    prefix_share: Fraction = 0.0
    """Share of the input tokens that could be found with an unlimited cache."""
    working_set: float | None = Field(default=None, ge=1, le=1e15, examples=[5_000_000])
    """Cached tokens, in the whole cluster, with which 1 - 1/e = 63 % of ``prefix_share`` is found."""

    @model_validator(mode="after")
    def _finds_what_there_is(self) -> Self:
        # A share of 0 is what a document has that says nothing of it, and what is written back of such a one.
        if 0 < self.prefix_share < self.hit_rate:
            says = (
                f"{self.hit_rate:g} is above prefix_share, {self.prefix_share:g}: a cache finds at most what is there"
            )
            raise misfit([Misfit(("hit_rate",), f"{says}, for example hit_rate: {self.prefix_share:g}")])
        return self


class Adapters(Card):
    """LoRA adapters on one base model."""

    count: int = Field(gt=0, le=100_000)
    rank: int = Field(gt=0, le=8_192, examples=[16])
    targets: Literal["attention", "all"] = "all"
    """Adapted matrices: the attention projections, or those and the feed-forward ones."""
    popularity: float = Field(default=1.0, ge=0, le=20, examples=[1.0])
    """Exponent of the power law of popularity; 0 for evenly used adapters."""


class Task(Card):
    """What a user waits for: several calls, some of which fail and are tried again."""

    calls: Few = 1
    timeout: Duration | None = Field(default=None, gt=0, le=MONTH, examples=["30 s"])
    retries: int = Field(default=0, ge=0, le=1_000, examples=[1])


class Tenant(Card):
    """Quotas of a tenant."""

    kv_quota: Fraction | None = None
    token_quota: TokenRate | None = Field(default=None, gt=0, le=1e12)


class WorkloadSpec(Card):
    """One kind of request."""

    name: Name
    model: str = Field(examples=["llama-3.1-8b"])
    """Name of a model card."""
    weights_dtype: NumberFormat | None = None
    """Number format of the weights; the checkpoint's own where absent."""
    kv_dtype: KvFormat | None = None
    """Number format of the KV cache; bf16 where absent."""
    traffic: Traffic | None = None
    """Arrivals, for an interactive promise."""
    batch: Batch | None = None
    """Documents, for a deadline promise."""
    lengths: RequestLengths = Field(examples=[{"input": {"p50": 1020, "p90": 2735}, "output": {"constant": 200}}])
    promise: Promise = Field(examples=[{"ttft": "500 ms", "tpot": "50 ms"}])
    sharing: Sharing = Sharing()
    adapters: Adapters | None = None
    priority: int = Field(default=0, ge=0, le=1_000_000, examples=[1])
    """Larger goes first where workloads share a pool."""
    tenant: Tenant | None = None
    task: Task = Task()

    @model_validator(mode="after")
    def _traffic_fits_promise(self) -> Self:
        if self.promise.deadline is None and self.traffic is None:
            raise ValueError("a promise of ttft and tpot needs traffic, for example traffic: {rate: 12 req/s}")
        if self.promise.deadline is not None and self.batch is None:
            raise ValueError("a deadline needs batch, for example batch: {documents: 1000000}")
        if self.traffic is not None and self.batch is not None:
            raise ValueError("traffic and batch exclude each other: leave one out")
        return self


class LayoutSpec(Card):
    """Degrees of parallelism of one replica."""

    tp: Few = 1
    pp: Few = 1
    dp: Few = 1
    ep: Few = 1


class CurrentPool(Card):
    """A pool that runs today."""

    workloads: tuple[str, ...] = Field(min_length=1)
    """Workloads that it serves."""
    role: Literal["mixed", "prefill", "decode"] = "mixed"
    layout: LayoutSpec
    replicas: Many
    max_batch: Many | None = None
    token_budget: Many | None = None


class Inventory(Card):
    """Nodes of one kind."""

    hardware: str = Field(examples=["h100-sxm"])
    """Name of a hardware card."""
    nodes: int = Field(gt=0, le=100_000)
    price: Money | None = Field(default=None, ge=1e-6, le=1e6)
    """Price of one accelerator for an hour; the card's where absent [USD/h]."""
    scale_out: Bandwidth | None = Field(default=None, ge=1e6, le=1e15, examples=["400 Gb/s"])
    """Bandwidth of one accelerator to other nodes, one direction; the card's where absent [B/s]."""


class Cluster(Card):
    """What there is to plan with."""

    inventory: tuple[Inventory, ...] = Field(min_length=1)
    current: tuple[CurrentPool, ...] = ()
    """What runs today, so that a plan can be held against it."""


class EngineChoice(Card):
    """The engine that serves all pools."""

    name: str = Field(examples=["vllm"])
    """Name of an engine card."""
    version: str = Field(pattern=r"^\d+(\.\d+)*$", examples=["0.11.0"])


class Reserve(Card):
    """What the cluster must survive."""

    nodes: int = Field(default=1, ge=0, le=100_000, examples=[1])
    """Nodes that may be lost while every interactive promise still holds."""
    mtbf: Duration | None = Field(default=None, ge=60, le=1e10, examples=["6335 h"])
    """Mean time between failures of one node [s]."""
    mttr: Duration | None = Field(default=None, ge=1, le=1e9, examples=["4 h"])
    """Mean time to repair a node [s]."""


class Prices(Card):
    """What things cost beyond accelerators."""

    energy: EnergyPrice | None = Field(default=None, ge=0, le=1e4)
    """Price of energy [USD/kWh]."""


class Scenario(Card):
    """A cluster, its workloads and their promises."""

    name: Name
    title: str = ""
    notes: str = ""
    """Where the numbers come from."""
    cluster: Cluster
    engine: EngineChoice
    workloads: tuple[WorkloadSpec, ...] = Field(min_length=1)
    reserve: Reserve = Reserve()
    prices: Prices = Prices()
    budgets: tuple[Budget, ...] = Field(default=(), examples=[[{"metric": "nodes", "max": 16}]])

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        faults = [*_repeated(self.workloads), *self._unknown()]
        there = sum(line.nodes for line in self.cluster.inventory)
        if self.reserve.nodes > there:
            problem = f"{self.reserve.nodes} is more than the {there} nodes of the cluster, for example nodes: 1"
            faults.append(Misfit(("reserve", "nodes"), problem))
        if faults:
            raise misfit(faults)
        return self

    def _unknown(self) -> Iterator[Misfit]:
        """Yield the places that name a workload which there is not."""
        names = [work.name for work in self.workloads]
        asked: list[tuple[Location, str | None]] = [
            (("cluster", "current", pool_index, "workloads", index), name)
            for pool_index, pool in enumerate(self.cluster.current)
            for index, name in enumerate(pool.workloads)
        ]
        asked += [(("budgets", index, "workload"), budget.workload) for index, budget in enumerate(self.budgets)]
        for location, name in asked:
            if name is not None and name not in names:
                yield Misfit(location, f"no workload {shorten(name)} in this scenario; {did_you_mean(name, names)}")


def _repeated(workloads: Sequence[WorkloadSpec]) -> Iterator[Misfit]:
    """Yield the workloads whose name another one has before them."""
    first: dict[str, int] = {}
    for index, work in enumerate(workloads):
        if work.name in first:
            problem = f"{work.name!r} is the name of workload {first[work.name]} too; names must differ"
            yield Misfit(("workloads", index, "name"), f"{problem}, for example name: {work.name}-2")
        first.setdefault(work.name, index)
