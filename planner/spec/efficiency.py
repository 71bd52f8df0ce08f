"""What an efficiency card says: how much of a peak an engine reaches on one accelerator.

Every group is one fit or one reading, with its source and its basis. An efficiency of 1 with no overhead is the
speed-of-light bound.
"""

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.calibration import Calibration
from planner.spec.card import Card, Sourced
from planner.spec.hardware import ComputeFormat
from planner.units import Bandwidth, Seconds

Basis = Literal["measured", "published", "assumed"]
KernelFormat = Literal["bf16", "fp8", "fp8_block", "int8", "int4", "mxfp4", "nvfp4"]
"""A number format with kernels of its own. ``fp8_block``: FP8 weights scaled per 128 x 128 block; ``fp8``: per tensor
or per channel."""
Share = Annotated[float, Field(gt=0, le=3)]
"""Share of a data-sheet peak. Slightly above 1 is possible: a fit may book cache hits as bandwidth."""


class Fit(Sourced):
    """Numbers of one origin."""

    basis: Basis
    """``measured``: fitted on timings of this hardware and engine. ``published``: read. ``assumed``: carried over."""
    band: float = Field(gt=0, le=5)
    """Half width of the relative 80 % band of a time made from these numbers."""


class Gemm(Fit):
    """Dense matrix product: ``max(flops / (compute * peak), bytes / (memory * bandwidth)) + kernel``."""

    compute: Share
    memory: Share
    kernel: Seconds = Field(ge=0)


class PrefillAttention(Fit):
    """``flops / (compute * peak * L / (L + half_length)) + bytes / (memory * bandwidth) + kernel``, L tokens."""

    compute: Share
    memory: Share
    half_length: float = Field(ge=0)
    """Query length at which half of ``compute`` is reached [tokens]."""
    kernel: Seconds = Field(ge=0)


class DecodeAttention(Fit):
    """``bytes / (memory * bandwidth) * (1 + spread / (batch * local kv heads)) + kernel``."""

    memory: Share
    spread: float = Field(ge=0)
    """How much few (sequence, head) pairs slow the reading down."""
    kernel: Seconds = Field(ge=0)


class Experts(Fit):
    """Routed experts, the rows of each expert padded to ``tile``.

    ``max(flops / (compute * peak), weights / (memory * bandwidth)) + activations / (activation * bandwidth) + kernel
    + per_expert * local experts``.
    """

    compute: Share
    memory: Share
    activation: Share
    kernel: Seconds = Field(ge=0)
    per_expert: Seconds = Field(ge=0)
    tile: int = Field(default=64, ge=1)


class FormatBlock(Card):
    """Kernels of one number format. A kernel that is absent falls back to ``bf16`` and is reported as assumed."""

    peak: ComputeFormat | None = None
    """Matrix units whose peak the ``compute`` shares refer to: ``bf16`` where only the weights are narrow. Absent: the
    block's own format (``fp8`` for ``fp8_block``, ``fp4`` for ``mxfp4`` and ``nvfp4``)."""
    gemm: Gemm | None = None
    prefill_attention: PrefillAttention | None = None
    """For a KV cache of this format."""
    decode_attention: DecodeAttention | None = None
    """For a KV cache of this format."""
    experts: Experts | None = None


class Regime(Card):
    """One way to run a collective: ``latency + factor * bytes / bandwidth``."""

    latency: Seconds = Field(ge=0)
    bandwidth: Bandwidth = Field(gt=0)
    """Bus bandwidth [B/s]."""


class Collective(Fit):
    """A collective inside the scale-up domain, by group size.

    All-reduce takes the faster of two regimes: one-shot ``latency + (p - 1) bytes / bandwidth`` and ring
    ``latency + 2 (p - 1) / p bytes / bandwidth``. The others have the ring regime only, with ``(p - 1) / p``.
    """

    one_shot: dict[int, Regime] = Field(default_factory=dict)
    ring: dict[int, Regime] = Field(min_length=1)


class Collectives(Card):
    """Collectives by kind."""

    all_reduce: Collective
    all_gather: Collective
    reduce_scatter: Collective
    all_to_all: Collective

    def slowed(self, factor: float) -> "Collectives":
        """Return collectives that take ``factor`` times as long."""

        def stretch(of: dict[int, Regime]) -> dict[int, Regime]:
            return {
                size: one.model_copy(update={"latency": one.latency * factor, "bandwidth": one.bandwidth / factor})
                for size, one in of.items()
            }

        kinds = {name: getattr(self, name) for name in type(self).model_fields}
        return self.model_copy(
            update={
                name: of.model_copy(update={"one_shot": stretch(of.one_shot), "ring": stretch(of.ring)})
                for name, of in kinds.items()
            }
        )


class ScaleOut(Fit):
    """What the network between nodes delivers."""

    bandwidth: Share
    """Share of the link's peak for large messages."""
    latency: Seconds = Field(ge=0)
    """Fixed cost of one message [s]."""


class Overhead(Fit):
    """What no kernel accounts for."""

    per_layer: Seconds = Field(ge=0)
    """Norms, rotary positions, activations and launch gaps of one layer [s]."""
    per_step: Seconds = Field(ge=0)
    """Scheduler, sampling and graph launch of one step [s]."""
    per_sequence: Seconds = Field(ge=0)
    """Scheduler, sampling and detokenisation of one sequence in a step [s]."""
    per_layer_host: Seconds = Field(default=0.0, ge=0)
    """Host's time to launch the kernels of one layer one by one [s]: no step that is not captured in a graph is faster
    than the launches of all layers."""
    per_prefill: Seconds = Field(ge=0)
    """Request handling from arrival to the first step, and back to the client [s]."""


class Imbalance(Fit):
    """How uneven the routed experts are."""

    experts: float = Field(ge=1)
    """Rows of the busiest accelerator over the mean, where experts are spread."""


class EfficiencyCard(Card):
    """Efficiencies of one engine on one accelerator."""

    hardware: str
    engine: str
    version: str
    """Engine version that most of the numbers were taken on."""
    sources: dict[str, str] = Field(min_length=1)
    formats: dict[KernelFormat, FormatBlock] = Field(min_length=1)
    collectives: Collectives
    scale_out: ScaleOut
    overhead: Overhead
    imbalance: Imbalance
    calibration: Calibration | None = None
    """The user's own measurements that it was fitted on; absent on cards that ship."""
