"""What a scenario says: a cluster, its models, its workloads and their promises."""

from itertools import pairwise
from math import log, sqrt
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from planner.spec.budget import Budget
from planner.spec.card import Card, Name
from planner.spec.model import KvFormat, NumberFormat
from planner.units import Bandwidth, EnergyPrice, Money, Rate, Seconds, TimeOfDay, TokenRate

Fraction = Annotated[float, Field(ge=0, le=1)]
"""A plain number between 0 and 1."""
Hours = Annotated[tuple[float, ...], Field(min_length=24, max_length=24)]
"""One number for each hour of the day, from midnight."""


class Lengths(Card):
    """How many tokens: one of a constant, a lognormal or a table of quantiles."""

    constant: PositiveInt | None = None
    """Every request has exactly so many tokens."""
    mean: float | None = Field(default=None, gt=0)
    """Mean tokens of a lognormal; beside ``quantiles``, the table is scaled to have it."""
    p50: float | None = Field(default=None, gt=0)
    """Median of a lognormal."""
    p90: float | None = Field(default=None, gt=0)
    """90th percentile of a lognormal."""
    p99: float | None = Field(default=None, gt=0)
    """99th percentile of a lognormal."""
    quantiles: dict[Annotated[float, Field(ge=0, le=100)], Annotated[float, Field(gt=0)]] | None = None
    """Tokens at each percentile (0 to 100), linear between them."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        marks = [self.p50, self.p90, self.p99]
        if self.constant is not None:
            if self.mean or self.quantiles or any(marks):
                raise ValueError("constant stands alone, for example {constant: 1024}")
        elif self.quantiles is not None:
            if any(marks):
                raise ValueError(
                    "quantiles replace p50, p90 and p99, for example {quantiles: {0: 10, 50: 900, 100: 8000}}"
                )
            levels = sorted(self.quantiles)
            if levels[:1] != [0] or levels[-1:] != [100]:
                raise ValueError("quantiles must run from 0 to 100, for example {0: 10, 50: 900, 100: 8000}")
            if any(self.quantiles[a] > self.quantiles[b] for a, b in pairwise(levels)):
                raise ValueError("quantiles must not fall, for example {0: 10, 50: 900, 100: 8000}")
        elif sum(mark is not None for mark in (self.mean, *marks)) != 2:  # noqa: PLR2004 - two fix a lognormal
            raise ValueError("give two of mean, p50, p90, p99, for example {p50: 1020, p90: 2735}, or quantiles")
        else:
            self.lognormal()
        return self

    def lognormal(self) -> tuple[float, float]:
        r"""Mean and standard deviation of the logarithm, of a lognormal through two of mean, p50, p90, p99.

        The q-quantile is :math:`e^{\mu + z_q \sigma}` and the mean :math:`e^{\mu + \sigma^2 / 2}`. A mean beside a
        quantile above the median fits two lognormals; the less spread one is meant.

        Raises
        ------
        ValueError
            Where no lognormal has both, or the lengths have another form.

        Examples
        --------
        >>> [round(x, 3) for x in Lengths(p50=1000, p90=2718.28).lognormal()]
        [6.908, 0.78]

        """
        marks = {0.5: self.p50, 0.9: self.p90, 0.99: self.p99}
        from statistics import NormalDist  # noqa: PLC0415 - brings fractions, decimals and hashes along

        points = [(NormalDist().inv_cdf(level), log(mark)) for level, mark in marks.items() if mark is not None]
        no_such = "no lognormal has both: a percentile may be exp(z^2 / 2) times the mean at most; give quantiles"
        if self.mean is None and len(points) == 2:  # noqa: PLR2004 - a line through two points
            (low, below), (high, above) = points
            spread = (above - below) / (high - low)
            centre = below - low * spread
        elif self.mean is not None and len(points) == 1:
            ((z, mark),) = points
            root = z * z - 2 * (mark - log(self.mean))
            if root < 0:
                raise ValueError(no_such)
            spread = sqrt(root) if z == 0 else z - sqrt(root)
            centre = log(self.mean) - spread**2 / 2
        else:
            raise ValueError("not a lognormal: give two of mean, p50, p90, p99, for example {p50: 1020, p90: 2735}")
        if spread < 0:
            raise ValueError(
                "percentiles must rise, with p50 below the mean and p90 above it, for example {p50: 1020, p90: 2735}"
            )
        return centre, spread


class Burstiness(Card):
    """How uneven arrivals are: variance over mean of the counts in windows of three lengths (1 for Poisson)."""

    dispersion_1s: float = Field(default=1.0, gt=0)
    dispersion_10s: float = Field(default=1.0, gt=0)
    dispersion_60s: float = Field(default=1.0, gt=0)
    measured_rate: Rate | None = Field(default=None, gt=0)
    """Mean rate at which the dispersion was measured; the offered peak rate where absent.

    A trace of a lower rate is scaled up by laying copies over each other, which leaves the dispersion as it is; one of
    a higher rate is thinned, which takes it towards 1."""


class Traffic(Card):
    """How many requests arrive, and when."""

    rate: Rate = Field(gt=0)
    """24-hour mean [req/s]."""
    profile: Hours | None = None
    """Weight of each hour; only ratios matter."""
    peak_to_mean: float = Field(default=1.0, ge=1)
    """Busiest hour over the mean, where there is no profile."""
    burstiness: Burstiness = Burstiness()

    @model_validator(mode="after")
    def _profile_is_positive(self) -> Self:
        if self.profile is not None:
            if self.peak_to_mean != 1.0:
                raise ValueError("profile and peak_to_mean exclude each other: leave one out")
            if min(self.profile) < 0 or max(self.profile) == 0:
                raise ValueError("profile needs weights of at least 0 and one above, for example 24 times 1.0")
        return self


class Batch(Card):
    """Deadline work: a number of documents once a day."""

    documents: PositiveInt
    """Requests of one day's run."""


class RequestLengths(Card):
    """Tokens of a request."""

    input: Lengths
    output: Lengths


class Promise(Card):
    """What the platform has promised: both limits for a share of the requests, or a deadline."""

    ttft: Seconds | None = Field(default=None, gt=0)
    """Time to first token [s]."""
    tpot: Seconds | None = Field(default=None, gt=0)
    """(last token - first token) / (output tokens - 1) [s]."""
    share: Fraction = Field(default=0.95, gt=0, lt=1)
    """Share of requests that must meet both."""
    percentile: float | None = Field(default=None, gt=0, lt=100)
    """Percentile to display; the share where absent."""
    deadline: Seconds | None = Field(default=None, gt=0)
    """Time from ``start`` until all documents must be done [s]."""
    start: TimeOfDay | None = None
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
    working_set: float | None = Field(default=None, gt=0)
    """Cached tokens, in the whole cluster, with which 1 - 1/e = 63 % of ``prefix_share`` is found."""


class Adapters(Card):
    """LoRA adapters on one base model."""

    count: PositiveInt
    rank: PositiveInt
    targets: Literal["attention", "all"] = "all"
    """Adapted matrices: the attention projections, or those and the feed-forward ones."""
    popularity: float = Field(default=1.0, ge=0)
    """Exponent of the power law of popularity; 0 for evenly used adapters."""


class Task(Card):
    """What a user waits for: several calls, some of which fail and are tried again."""

    calls: PositiveInt = 1
    timeout: Seconds | None = Field(default=None, gt=0)
    retries: int = Field(default=0, ge=0)


class Tenant(Card):
    """Quotas of a tenant."""

    kv_quota: Fraction | None = None
    token_quota: TokenRate | None = None


class WorkloadSpec(Card):
    """One kind of request."""

    name: Name
    model: str
    """Name of a model card."""
    weights_dtype: NumberFormat | None = None
    """Number format of the weights; the checkpoint's own where absent."""
    kv_dtype: KvFormat | None = None
    """Number format of the KV cache; bf16 where absent."""
    traffic: Traffic | None = None
    """Arrivals, for an interactive promise."""
    batch: Batch | None = None
    """Documents, for a deadline promise."""
    lengths: RequestLengths
    promise: Promise
    sharing: Sharing = Sharing()
    adapters: Adapters | None = None
    priority: int = Field(default=0, ge=0)
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

    tp: PositiveInt = 1
    pp: PositiveInt = 1
    dp: PositiveInt = 1
    ep: PositiveInt = 1


class CurrentPool(Card):
    """A pool that runs today."""

    workloads: tuple[str, ...] = Field(min_length=1)
    """Workloads that it serves."""
    role: Literal["mixed", "prefill", "decode"] = "mixed"
    layout: LayoutSpec
    replicas: PositiveInt
    max_batch: PositiveInt | None = None
    token_budget: PositiveInt | None = None


class Inventory(Card):
    """Nodes of one kind."""

    hardware: str
    """Name of a hardware card."""
    nodes: PositiveInt
    price: Money | None = Field(default=None, gt=0)
    """Price of one accelerator for an hour; the card's where absent [USD/h]."""
    scale_out: Bandwidth | None = Field(default=None, gt=0)
    """Bandwidth of one accelerator to other nodes, one direction; the card's where absent [B/s]."""


class Cluster(Card):
    """What there is to plan with."""

    inventory: tuple[Inventory, ...] = Field(min_length=1)
    current: tuple[CurrentPool, ...] = ()
    """What runs today, so that a plan can be held against it."""


class EngineChoice(Card):
    """The engine that serves all pools."""

    name: str
    """Name of an engine card."""
    version: str = Field(pattern=r"^\d+(\.\d+)*$", examples=["0.11.0"])


class Reserve(Card):
    """What the cluster must survive."""

    nodes: int = Field(default=1, ge=0)
    """Nodes that may be lost while every interactive promise still holds."""
    mtbf: Seconds | None = Field(default=None, gt=0)
    """Mean time between failures of one node [s]."""
    mttr: Seconds | None = Field(default=None, gt=0)
    """Mean time to repair a node [s]."""


class Prices(Card):
    """What things cost beyond accelerators."""

    energy: EnergyPrice | None = Field(default=None, ge=0)
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
    budgets: tuple[Budget, ...] = ()

    @model_validator(mode="after")
    def _names_are_known_once(self) -> Self:
        names = [work.name for work in self.workloads]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            msg = f"workload names must differ, {', '.join(twice)} occurs more than once"
            raise ValueError(msg)
        asked = {name for pool in self.cluster.current for name in pool.workloads}
        asked |= {budget.workload for budget in self.budgets if budget.workload}
        if unknown := sorted(asked - set(names)):
            msg = f"no workload {unknown[0]!r} in this scenario, for example {names[0]!r}"
            raise ValueError(msg)
        return self
