"""One published or measured figure of a running engine: a row of a table of measurements, in SI units."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Kind = Literal["prefill", "decode", "fixed_concurrency", "saturated", "open_loop", "server_at_slo"]
"""How it was measured: a single prefill or decode batch; N requests that circulate; all requests at once; arrivals at
a rate; the highest rate within limits."""
Metric = Literal[
    "prefill_time",
    "decode_step_time",
    "e2e_latency",
    "ttft_mean",
    "ttft_p50",
    "ttft_p90",
    "ttft_p95",
    "ttft_p99",
    "tpot_mean",
    "tpot_p50",
    "tpot_p90",
    "tpot_p95",
    "tpot_p99",
    "output_tokens_per_s",
    "output_tokens_per_s_per_accelerator",
    "total_tokens_per_s",
]
"""What was measured [s, or tokens/s of the whole system unless it says per accelerator]."""


def _blank(value: object) -> object:
    """Take an empty cell as absent, and numbers from text."""
    return None if isinstance(value, str) and not value.strip() else value


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


Count = Annotated[Annotated[int, Field(ge=0, le=1_000_000)] | None, BeforeValidator(_blank)]
Amount = Annotated[Annotated[float, Field(ge=0, allow_inf_nan=False)] | None, BeforeValidator(_blank)]
Text = Annotated[str | None, BeforeValidator(_blank)]
WeightsName = Literal["bf16", "fp16", "fp8", "fp4", "mxfp4", "nvfp4", "int8", "int4"]


def figure(metric: str) -> str:
    """Metric without its mean or percentile.

    >>> figure("ttft_p99"), figure("output_tokens_per_s")
    ('ttft', 'output_tokens_per_s')
    """
    return metric[:4] if metric[:4] in {"ttft", "tpot"} else metric


FIXED_BATCH = "fixed_batch"
"""Regime of one batch that starts and ends together."""


class Observation(BaseModel):
    """A row. Blank cells are absent; columns that are not listed here are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: str = ""
    """Name of the row."""
    source: str = ""
    """Who published or measured it."""
    engine: str
    """Engine as the source calls it."""
    engine_version: Text = None
    model: str
    """Name of a model card, or of a repository."""
    weights_dtype: Annotated[WeightsName | None, BeforeValidator(_lower), BeforeValidator(_blank)] = None
    """Absent: the checkpoint's own."""
    kv_dtype: Annotated[Literal["bf16", "fp16", "fp8"] | None, BeforeValidator(_lower), BeforeValidator(_blank)] = None
    """Absent: FP8 where the weights are in FP8 or NVFP4, else 16 bits."""
    hardware: str
    """Name of a hardware card."""
    accelerators: Count = None
    """Accelerators of the whole system; absent: those of one replica, or of one rank where attention is
    data-parallel."""
    tp: Count = None
    pp: Count = None
    ep: Count = None
    dp: Count = None
    """Replicas, or ranks of data-parallel attention: ``dp_kind`` says which."""
    input_tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Mean."""
    output_tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Mean."""
    concurrency: Amount = None
    """Requests in flight, or sequences of a batch."""
    request_rate: Annotated[Annotated[float, Field(ge=0)] | None, BeforeValidator(_blank)] = None
    """Arrivals [req/s]; ``inf``: all at once."""
    regime: Text = None
    """As the source says; ``fixed_batch`` is one batch that starts and ends together."""
    kind: Kind
    metric: Metric
    value: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    unit: Literal["s", "token/s"]
    dp_kind: Annotated[Literal["replicas", "attention"] | None, BeforeValidator(_blank)] = None
    length_jitter: Text = None
    """``uniform LOW-HIGH of nominal`` where lengths were drawn between two shares of the stated ones."""
    num_prompts: Text = None
    """``N x concurrency`` or a number: requests of the run."""
    speculative: Text = None
    """``none`` or absent; anything else means draft tokens."""
    notes: str = ""
