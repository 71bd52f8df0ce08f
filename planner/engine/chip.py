"""One accelerator as one engine drives it with one pair of number formats: peaks times what is reached of them."""

from dataclasses import dataclass
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
"""Bits of a weight with its scales. OCP Microscaling v1.0: 4 + 8/32 bits; NVFP4: 4 + 8/16 bits; int4: 4 + 32/128
bits."""
ACTIVATION_BYTES = 2.0
"""Activations travel between kernels and accelerators as 16-bit floats."""


@dataclass(frozen=True, slots=True)
class Chip:
    """What a step model needs of an accelerator. Rates in SI units, efficiencies as fitted."""

    hardware: str
    weights: "NumberFormat"
    kv: "KvFormat"
    peak: float
    """Dense peak of linear layers [FLOP/s]."""
    attention_peak: float
    """Dense peak of attention [FLOP/s]."""
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
    """Dense peak of routed experts [FLOP/s]."""
    collectives: Collectives
    scale_out: ScaleOut
    overhead: Overhead
    imbalance: Imbalance
    assumed: tuple[str, ...]
    """Groups of numbers that are not measured on this hardware and engine."""


def compute_format(weights: "NumberFormat", hardware: "HardwareCard") -> "ComputeFormat":
    """Format in which the matrix units multiply weights of a format: its own where they can, else 16 bits.

    int4 is weight-only. Formats of 4 bits need fp4 units, otherwise weights are widened on the fly.
    """
    wanted: dict[str, ComputeFormat] = {"fp8": "fp8", "int8": "int8", "mxfp4": "fp4", "nvfp4": "fp4"}
    choice = wanted.get(weights, "bf16")
    return choice if choice in hardware.peak.rates else "bf16"


def _pick(blocks: list[tuple[str, FormatBlock]], part: str, kind: type[T], assumed: list[str]) -> T:
    """First block that has the kernel; a later one than asked for is an assumption."""
    for position, (name, block) in enumerate(blocks):
        found = getattr(block, part)
        if isinstance(found, kind):
            if position or found.basis != "measured":
                assumed.append(f"{part} {blocks[0][0]}" + (f" as {name}" if position else ""))
            return found
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
    rates = hardware.peak.rates
    linear = rates[compute_format(weights, hardware)]
    for part, fit in (
        ("overhead", efficiency.overhead),
        ("scale_out", efficiency.scale_out),
        ("all_reduce", efficiency.collectives.all_reduce),
        ("imbalance", efficiency.imbalance),
    ):
        if fit.basis != "measured":
            assumed.append(part)
    return Chip(
        hardware=hardware.name,
        weights=weights,
        kv=kv,
        peak=linear,
        attention_peak=rates["bf16"],
        bandwidth=hardware.memory.bandwidth,
        usable=hardware.memory.usable,
        link=hardware.scale_up.bandwidth,
        domain=hardware.scale_up.domain,
        node=hardware.node.accelerators,
        scale_out_link=scale_out or hardware.scale_out.bandwidth,
        host_link=hardware.host.bandwidth,
        gemm=_pick(chain, "gemm", Gemm, assumed),
        half=_pick(wide, "gemm", Gemm, []),
        half_peak=rates["bf16"],
        prefill_attention=_pick(caches, "prefill_attention", PrefillAttention, assumed),
        decode_attention=_pick(caches, "decode_attention", DecodeAttention, assumed),
        experts=_pick(chain, "experts", Experts, assumed),
        experts_peak=linear,
        collectives=efficiency.collectives,
        scale_out=efficiency.scale_out,
        overhead=efficiency.overhead,
        imbalance=efficiency.imbalance,
        assumed=tuple(assumed),
    )
