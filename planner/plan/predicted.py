"""What a plan does for one workload: latencies with their percentiles and bands, and the share that is good.

``recommend`` and ``simulate`` both answer in these types. Figures are in SI units, shares between 0 and 1, percentiles
between 0 and 100.
"""

from pydantic import BaseModel, ConfigDict

Band = tuple[float | None, float | None]
"""Low and high end of the 80 % band; an end is null where the queue there has no steady state."""


class Part(BaseModel):
    """Base of every part of an answer: immutable, closed to unknown keys and to figures that are not finite."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )


class AtPercentile(Part):
    """A latency at the percentile that the promise shows."""

    percentile: float
    value: float | None
    """Null only where the load is 0.97 or more [s]."""
    band: Band


class Percentiles(Part):
    """A latency [s]. Null only where the load is 0.97 or more."""

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    at: AtPercentile
    limit: float
    """The promise."""


class DeadlineResult(Part):
    """A run against its deadline [s from its start]."""

    limit: float
    finish: float | None
    band: Band
    met: bool


class Predicted(Part):
    """What the plan does at the busiest hour, without its spares."""

    ttft: Percentiles | None
    """Time to first token; null for a deadline."""
    tpot: Percentiles | None
    """(last token - first token) / (output tokens - 1) of a request; null for a deadline."""
    deadline: DeadlineResult | None
    goodput_share: float | None
    """Share of requests that meet TTFT and TPOT together; null for a deadline."""
    goodput_share_band: Band | None
    goodput_share_required: float | None
    promise_probability: float | None
    """Probability that the promise holds, given how far measurements lie from predictions; null where not asked."""
    offered_rps: float
    """Arrivals in the busiest hour [req/s]."""
    goodput_rps: float
    """offered_rps x goodput_share [req/s]."""
    output_tokens_per_s: float
    prefix_hit_rate: float
    """Share of input tokens found in the cache."""
