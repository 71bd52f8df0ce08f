"""Tables behind the efficiency cards: which card may borrow from which, what is physical, and what is assumed."""

from dataclasses import dataclass

from planner.spec.hardware import ComputeFormat

ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
"""Engine card and its name in the fits; the order is that of the fallback between engines."""
KIN = {"vllm-eager": "vllm", "tensorrt-llm-cpp": "tensorrt-llm"}
"""Earlier generations of engines, and the engine whose kernels stand in for theirs."""
OWN_ALL_REDUCE = {"vllm-eager": "nccl"}
"""Engines whose all-reduces are those of a library."""
EARLY = ("vllm", "vllm-eager", "sglang", "tensorrt-llm", "tensorrt-llm-cpp")
"""Engines of accelerators from before graphs were captured."""
LATER = ("vllm", "sglang", "tensorrt-llm", "tensorrt-llm-cpp")
NVIDIA, AMD, TPU = ("vllm", "sglang", "tensorrt-llm"), ("vllm", "sglang"), ("vllm",)
HOPPER, BLACKWELL = ("bf16", "fp8", "int8"), ("bf16", "fp8", "fp4", "int8")


@dataclass(frozen=True, slots=True)
class Target:
    """One hardware card: where its numbers may come from when it has none of its own."""

    engines: tuple[str, ...]
    units: tuple[str, ...]
    """Number formats of its matrix units."""
    link: float
    """Peak of its scale-up link, one direction [GB/s]."""
    kernels_from: tuple[str, ...]
    """Cards whose kernels stand in, nearest first."""
    links_from: str
    """Card whose collectives stand in, scaled by the ratio of the links."""
    aliases: tuple[str, ...] = ()
    """Its names in the fits and in the readings."""
    mesh: bool = False
    """Whether p accelerators see only (p - 1) / 7 of the link."""


TARGETS = {
    "a100-80gb-sxm": Target(EARLY, ("bf16", "int8"), 300, ("h100-sxm",), "h100-sxm", ("a100_sxm", "A100-SXM")),
    "a100-40gb-sxm": Target(EARLY, ("bf16", "int8"), 300, ("a100-80gb-sxm",), "a100-80gb-sxm"),
    "a100-80gb-pcie": Target(EARLY, ("bf16", "int8"), 31, ("a100-80gb-sxm",), "rtx-pro-6000-server", ("A100-PCIe",)),
    "h100-sxm": Target(EARLY, HOPPER, 450, ("h200-sxm",), "h200-sxm", ("h100_sxm", "H100-SXM")),
    "h100-pcie": Target(EARLY, HOPPER, 63, ("h100-sxm",), "rtx-pro-6000-server"),
    "h100-nvl": Target(LATER, HOPPER, 300, ("h100-sxm",), "h100-sxm"),
    "h200-sxm": Target(LATER, HOPPER, 450, ("h100-sxm",), "h100-sxm", ("h200_sxm", "H200")),
    "h200-nvl": Target(LATER, HOPPER, 450, ("h200-sxm",), "h200-sxm"),
    "h20": Target(LATER, HOPPER, 450, ("h100-sxm",), "h100-sxm"),
    "h800": Target(LATER, HOPPER, 200, ("h100-sxm",), "h100-sxm"),
    "l40s": Target(LATER, HOPPER, 31, ("a100-80gb-sxm",), "rtx-pro-6000-server", ("l40s", "L40S")),
    "l4": Target(LATER, HOPPER, 31, ("l40s", "a100-80gb-sxm"), "l40s"),
    "b200-sxm": Target(LATER, BLACKWELL, 900, ("h200-sxm",), "h200-sxm", ("b200_sxm", "B200")),
    "b300-sxm": Target(NVIDIA, BLACKWELL, 900, ("b200-sxm",), "b200-sxm", ("B300",)),
    "gb200": Target(LATER, BLACKWELL, 900, ("b200-sxm",), "b200-sxm", ("GB200",)),
    "gb300": Target(NVIDIA, BLACKWELL, 900, ("b200-sxm",), "b200-sxm", ("GB300",)),
    "rtx-pro-6000-server": Target(NVIDIA, BLACKWELL, 63, ("b200-sxm",), "l40s", ("RTX-PRO-6000-BSE",)),
    "mi300x": Target(AMD, HOPPER, 448, ("h100-sxm",), "h100-sxm", ("MI300X",), mesh=True),
    "mi325x": Target(AMD, HOPPER, 448, ("h100-sxm",), "mi300x", ("MI325X",)),
    "mi355x": Target(AMD, BLACKWELL, 535.5, ("h100-sxm", "b200-sxm"), "mi300x", ("MI355X",)),
    "tpu-v4": Target(TPU, ("bf16",), 300, ("h100-sxm",), "h100-sxm"),
    "tpu-v5e": Target(TPU, ("bf16", "int8"), 200, ("h100-sxm",), "h100-sxm"),
    "tpu-v6e": Target(TPU, ("bf16", "int8"), 400, ("h100-sxm",), "h100-sxm"),
}
CARD = {alias: name for name, target in TARGETS.items() for alias in target.aliases}

MAX_MEDIAN = 30.0
"""Median error above which a fit is not used [%]."""
RANGES = {
    "compute": (0.05, 0.95),
    "memory": (0.15, 1.3),
    "activation": (0.05, 1.3),
    "spread": (0.0, 5.0),
    "half_length": (0.0, 4096.0),
    "kernel": (0.5, 100.0),
    "per_expert": (0.0, 1.0),
}
"""What is physical [share, share, share, -, tokens, us, us]; a fit outside ran into a bound or found no optimum."""
NARROWER = {
    ("gemm", "kernel"): (0.5, 30.0),
    ("gemm", "memory"): (0.25, 1.3),
    ("experts", "memory"): (0.25, 1.3),
    ("decode_attention", "memory"): (0.25, 1.3),
}
COLUMNS = {
    "gemm": {"compute": "eff_compute", "memory": "eff_mem", "kernel": "overhead_us"},
    "prefill_attention": {
        "compute": "eff_compute",
        "memory": "eff_mem",
        "half_length": "L_half",
        "kernel": "overhead_us",
    },
    "decode_attention": {"memory": "eff_mem", "spread": "c", "kernel": "overhead_us"},
    "experts": {
        "compute": "eff_compute",
        "memory": "eff_mem",
        "activation": "eff_act",
        "kernel": "overhead_us",
        "per_expert": "per_local_expert_us",
    },
}
TIMES = ("kernel", "per_expert")
"""Columns in microseconds."""
OPERATORS = {
    "gemm_max": "gemm",
    "prefill_attn_sum": "prefill_attention",
    "decode_attn": "decode_attention",
    "moe": "experts",
}
COLLECTIVES = {
    "comm_all_gather_alpha_beta": "all_gather",
    "comm_reduce_scatter_alpha_beta": "reduce_scatter",
    "comm_alltoall_alpha_beta": "all_to_all",
}
GROUPS = (2, 4, 8)
"""Group sizes that every card holds."""
ROUTINGS = ("power_law_1.2", "balanced", "")
"""Of two fits of the same kernel the one with the uneven routing is used."""
UNITS: dict[str, ComputeFormat] = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
"""Matrix units that a timed format runs on."""
FITTED = {"bf16": "bfloat16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "mxfp4": "w4a16_mxfp4"}
FOUR_BIT_FORMATS = ("int4", "mxfp4", "nvfp4")
FOUR_BIT: dict[str, tuple[str, ...]] = {"gemm": ("bfloat16",), "experts": ("w4a16_mxfp4", "bfloat16")}
EIGHT_BIT: dict[str, tuple[str, ...]] = {"gemm": ("bfloat16",), "experts": ("bfloat16",)}
"""Kernels that stand in where only the weights are narrow and the matrix units run bf16."""
FORMATS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "bf16": ("bf16", dict.fromkeys(COLUMNS, ("bfloat16",))),
    "fp8": (
        "fp8",
        {
            "gemm": ("fp8", "fp8_block"),
            "prefill_attention": ("fp8",),
            "decode_attention": ("fp8",),
            "experts": ("fp8", "fp8_block"),
        },
    ),
    "fp8_block": ("fp8", {"gemm": ("fp8_block", "fp8"), "experts": ("fp8_block", "fp8")}),
    "int8": ("int8", {"gemm": ("fp8", "bfloat16"), "experts": ("fp8", "fp8_block", "bfloat16")}),
    "int4": ("bf16", FOUR_BIT),
    "mxfp4": ("fp4", {"gemm": ("nvfp4",), "experts": ("nvfp4",)}),
    "nvfp4": ("fp4", {"gemm": ("nvfp4",), "experts": ("nvfp4",)}),
}
"""Format of the card, its matrix units, and the fitted formats to try per kernel."""

CARRIED_BAND = 0.3
"""Least band of a number that was carried over or assumed."""
LEAST_BAND = 0.08
TO_80 = 0.78
"""Ratio of the 80 % to the 90 % quantile of a half-normal error."""
OVERHEAD = {
    "vllm": {"per_layer": "4 us", "per_step": "1 ms", "per_sequence": "10 us", "per_prefill": "5 ms"},
    "vllm-eager": {"per_layer": "4 us", "per_step": "8 ms", "per_sequence": "10 us", "per_prefill": "5 ms"},
    "sglang": {"per_layer": "4 us", "per_step": "0.8 ms", "per_sequence": "5 us", "per_prefill": "5 ms"},
    "tensorrt-llm": {"per_layer": "4 us", "per_step": "0.5 ms", "per_sequence": "3 us", "per_prefill": "5 ms"},
    "tensorrt-llm-cpp": {"per_layer": "4 us", "per_step": "0.5 ms", "per_sequence": "3 us", "per_prefill": "5 ms"},
}
"""What no kernel accounts for, until it is calibrated against whole steps."""
LAUNCHES = {"vllm-eager": "0.3 ms"}
"""Launching some 25 kernels of a layer one by one from Python, 10 to 15 us each, and what an engine does in between."""
OVERHEAD_BAND = 0.5
IMBALANCE = 1.1
"""Busiest accelerator over the mean; the fits with uneven routing hold the rest of the skew already."""
SCALE_OUT = {"bandwidth": 0.73, "latency": "9 us"}


def mesh_share(size: int) -> float:
    """Share of its links that an accelerator of a fully connected group of eight uses among ``size``.

    >>> mesh_share(8), mesh_share(2) == 1 / 7
    (1.0, True)
    """
    return min(1.0, (size - 1) / 7)
