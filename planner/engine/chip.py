"""One accelerator as one engine drives it with one pair of number formats: peaks times what is reached of them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from planner.spec.efficiency import (
    Collectives,
    DecodeAttention,
    EfficiencyCard,
    Experts,
    Fit,
    FormatBlock,
    Gemm,
    Imbalance,
    Overhead,
    PrefillAttention,
    ScaleOut,
)

if TYPE_CHECKING:
    from planner.spec.hardware import ComputeFormat, HardwareCard
    from planner.spec.model import KvFormat, NumberFormat

T = TypeVar("T", bound=Fit)

BITS = {"bf16": 16.0, "fp8": 8.0, "int8": 8.0, "int4": 4.25, "mxfp4": 4.25, "nvfp4": 4.5}
"""Bits of a weight with its scales. OCP Microscaling v1.0: 4 + 8/32; NVFP4: 4 + 8/16; int4: 4 + 32/128."""
ACTIVATION_BYTES = 2.0
"""Activations travel between kernels and accelerators as 16-bit floats."""


@dataclass(frozen=True, slots=True)
class Chip:
    """What a step model needs of an accelerator. Rates in SI units, efficiencies as fitted."""

    hardware: str
    weights: "NumberFormat"
    kv: "KvFormat"
    peak: float
    """Dense peak that the compute share of ``gemm`` refers to [FLOP/s]."""
    attention_peak: float
    """Dense peak that the compute share of ``prefill_attention`` refers to [FLOP/s]."""
    bandwidth: float
    """Memory bandwidth [B/s]."""
    usable: float
    """Memory that the driver reports [B]."""
    link: float
    """Scale-up bandwidth, one direction [B/s]."""
    domain: int
    """Accelerators that scale-up links join."""
    node: int
    """Accelerators of one node."""
    scale_out_link: float
    """Scale-out bandwidth of one accelerator, one direction [B/s]."""
    host_link: float
    """Host bandwidth, one direction [B/s]."""
    gemm: Gemm
    half: Gemm
    """Linear layers that stay in 16 bits (head, router)."""
    half_peak: float
    """Dense 16-bit peak [FLOP/s]."""
    prefill_attention: PrefillAttention
    decode_attention: DecodeAttention
    experts: Experts
    experts_peak: float
    """Dense peak that the compute share of ``experts`` refers to [FLOP/s]."""
    collectives: Collectives
    scale_out: ScaleOut
    overhead: Overhead
    imbalance: Imbalance
    assumed: tuple[str, ...]
    """Groups of numbers that are not measured on this hardware and engine."""


def slowed(chip: Chip, factor: float) -> Chip:
    """Return a chip on which every pass takes ``factor`` times as long: rates divided, fixed costs multiplied.

    The links between nodes stay as they are where KV moves over them; only the engine's own times are in question.

    """
    if factor == 1.0:
        return chip
    kernels = {
        name: getattr(chip, name).model_copy(update={"kernel": getattr(chip, name).kernel * factor})
        for name in ("gemm", "half", "prefill_attention", "decode_attention")
    }
    fixed = {name: getattr(chip.experts, name) * factor for name in ("kernel", "per_expert")}
    own = {
        name: getattr(chip.overhead, name) * factor for name in type(chip.overhead).model_fields if name[:4] == "per_"
    }
    return replace(
        chip,
        **{name: getattr(chip, name) / factor for name in ("peak", "half_peak", "attention_peak", "experts_peak")},
        **kernels,
        bandwidth=chip.bandwidth / factor,
        experts=chip.experts.model_copy(update=fixed),
        collectives=chip.collectives.slowed(factor),
        overhead=chip.overhead.model_copy(update=own),
    )


UNITS: "dict[str, ComputeFormat]" = {"fp8": "fp8", "fp8_block": "fp8", "int8": "int8", "mxfp4": "fp4", "nvfp4": "fp4"}
"""Matrix units of a number format where its block names none; int4 is weight-only, so it runs on 16-bit units."""


def units(name: str, block: FormatBlock, hardware: "HardwareCard") -> "ComputeFormat":
    """Matrix units whose peak the compute shares of a block refer to: those named, or the format's own if any."""
    wanted = block.peak or UNITS.get(name, "bf16")
    return wanted if wanted in hardware.peak.rates else "bf16"


def _pick(
    blocks: list[tuple[str, FormatBlock]], part: str, kind: type[T], hardware: "HardwareCard", assumed: list[str]
) -> tuple[T, float]:
    """Find the first block that has the kernel, and its peak [FLOP/s]; a later block than asked for is assumed."""
    for position, (name, block) in enumerate(blocks):
        found = getattr(block, part)
        if isinstance(found, kind):
            if position or found.basis != "measured":
                assumed.append(f"{part} {blocks[0][0]}" + (f" as {name}" if position else ""))
            return found, hardware.peak.rates[units(name, block, hardware)]
    msg = f"efficiency card has no {part} for any of {', '.join(name for name, _ in blocks)}"
    raise ValueError(msg)


def chip(
    hardware: "HardwareCard",
    efficiency: EfficiencyCard,
    weights: "NumberFormat" = "bf16",
    kv: "KvFormat" = "bf16",
    *,
    block: bool = False,
    scale_out: float | None = None,
) -> Chip:
    """Join a data sheet with the efficiencies of one engine.

    Parameters
    ----------
    weights, kv
        Number formats of the quantised weights and of the KV cache.
    block
        Whether the weights are quantised in blocks.
    scale_out
        Bandwidth of one accelerator to other nodes where the cluster differs from the card [B/s].

    Raises
    ------
    ValueError
        If the efficiency card has no kernel to fall back on.

    """
    assumed: list[str] = []
    formats: dict[str, FormatBlock] = {str(name): block for name, block in efficiency.formats.items()}
    names = [f"{weights}_block"] if block and f"{weights}_block" in formats else []
    names += [name for name in (weights, "bf16") if name in formats]
    chain = [(name, formats[name]) for name in dict.fromkeys(names)]
    wide = [("bf16", formats["bf16"])]
    caches: list[tuple[str, FormatBlock]] = [
        (name, formats[name]) for name in dict.fromkeys((kv, "bf16")) if name in formats
    ]
    for part, fit in (
        ("overhead", efficiency.overhead),
        ("scale_out", efficiency.scale_out),
        ("all_reduce", efficiency.collectives.all_reduce),
        ("imbalance", efficiency.imbalance),
    ):
        if fit.basis != "measured":
            assumed.append(part)
    gemm, peak = _pick(chain, "gemm", Gemm, hardware, assumed)
    half, half_peak = _pick(wide, "gemm", Gemm, hardware, [])
    first, attention_peak = _pick(caches, "prefill_attention", PrefillAttention, hardware, assumed)
    later, _ = _pick(caches, "decode_attention", DecodeAttention, hardware, assumed)
    experts, experts_peak = _pick(chain, "experts", Experts, hardware, assumed)
    return Chip(
        hardware=hardware.name,
        weights=weights,
        kv=kv,
        peak=peak,
        attention_peak=attention_peak,
        bandwidth=hardware.memory.bandwidth,
        usable=hardware.memory.usable,
        link=hardware.scale_up.bandwidth,
        domain=hardware.scale_up.domain,
        node=hardware.node.accelerators,
        scale_out_link=scale_out or hardware.scale_out.bandwidth,
        host_link=hardware.host.bandwidth,
        gemm=gemm,
        half=half,
        half_peak=half_peak,
        prefill_attention=first,
        decode_attention=later,
        experts=experts,
        experts_peak=experts_peak,
        collectives=efficiency.collectives,
        scale_out=efficiency.scale_out,
        overhead=efficiency.overhead,
        imbalance=efficiency.imbalance,
        assumed=tuple(assumed),
    )
