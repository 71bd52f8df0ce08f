"""What calibration may move: factors on the times of an efficiency card, each with a physical meaning."""

import math
from collections.abc import Mapping

from planner.spec.efficiency import EfficiencyCard, FormatBlock, Regime

BY_FORMAT = ("gemm_compute", "gemm_memory", "experts_compute", "experts_memory")
BY_CACHE = ("prefill_attention", "decode_attention")
OVERHEADS = ("per_layer", "per_step", "per_sequence", "per_layer_host", "per_prefill")
WHOLE = ("kernel", "latency", "bus", *OVERHEADS)
CLASSES = (*BY_FORMAT, *BY_CACHE, *WHOLE)
"""What a factor stretches: above 1 it takes longer. ``BY_FORMAT`` has one for each format of weights, ``BY_CACHE`` for
each of the KV cache, ``WHOLE`` one for the card."""
LOOSE = {
    "gemm_compute": 0.35,
    "gemm_memory": 0.35,
    "prefill_attention": 0.4,
    "decode_attention": 0.6,
    "bus": 0.7,
} | dict.fromkeys(("kernel", "latency", *OVERHEADS), 1.6)
"""How much wider the priors are: operator timings tell much about matrices and attention, little about fixed costs."""
STRETCH = {
    "gemm": {"compute": "gemm_compute", "memory": "gemm_memory"},
    "experts": {"compute": "experts_compute", "activation": "experts_compute", "memory": "experts_memory"},
    "prefill_attention": {"compute": "prefill_attention"},
    "decode_attention": {"memory": "decode_attention"},
}
"""Which factor divides which share of a peak, by kernel."""
LARGEST_SHARE = {"compute": 0.95, "memory": 1.0, "activation": 1.3}
"""What a factor may raise a share to: no kernel sustains more of a dense peak, or of the bandwidth of memory."""
LONGEST_KERNEL = 100e-6
"""Longest fixed cost of a kernel that a factor may lead to [s]."""
Key = tuple[str, str]
"""Class of a factor, and the number format that it is for; '' for those of a whole card."""


def capped(share: str, value: float, by: float) -> float:
    """Divide a share of a peak by a factor on its time, within what is physical.

    >>> capped("compute", 0.8, 0.5), capped("memory", 0.8, 1.6), capped("memory", 1.05, 0.9)
    (0.95, 0.5, 1.05)
    """
    return min(value / by, max(LARGEST_SHARE[share], value))


def longest(kernel: float, factor: float) -> float:
    """Stretch the fixed cost of a kernel within what is physical [s].

    >>> longest(45e-6, 4.0)
    0.0001
    """
    return min(kernel * factor, max(LONGEST_KERNEL, kernel))


def stretched(card: EfficiencyCard, log: Mapping[Key, float]) -> EfficiencyCard:
    """Return a card with its times multiplied by the exponentials of ``log``; what it does not name stays."""
    x = {key: math.exp(value) for key, value in log.items() if value}
    return card.model_copy(
        update={
            "formats": {name: _block(str(name), of, x) for name, of in card.formats.items()},
            "collectives": card.collectives.model_copy(
                update={name: _collective(card, name, x) for name in type(card.collectives).model_fields}
            ),
            "overhead": card.overhead.model_copy(
                update={name: getattr(card.overhead, name) * x.get((name, ""), 1.0) for name in OVERHEADS}
            ),
        }
    )


def _block(form: str, of: FormatBlock, x: Mapping[Key, float]) -> FormatBlock:
    """Stretch the kernels of one format."""
    change: dict[str, object] = {}
    for kernel, shares in STRETCH.items():
        if fit := getattr(of, kernel):
            update = {name: capped(name, getattr(fit, name), x.get((by, form), 1.0)) for name, by in shares.items()}
            change[kernel] = fit.model_copy(update=update | {"kernel": longest(fit.kernel, x.get(("kernel", ""), 1.0))})
    return of.model_copy(update=change)


def _collective(card: EfficiencyCard, name: str, x: Mapping[Key, float]) -> object:
    """Stretch one collective."""
    late, bus = x.get(("latency", ""), 1.0), x.get(("bus", ""), 1.0)

    def regimes(of: dict[int, Regime]) -> dict[int, Regime]:
        return {
            size: one.model_copy(update={"latency": one.latency * late, "bandwidth": one.bandwidth / bus})
            for size, one in of.items()
        }

    found = getattr(card.collectives, name)
    return found.model_copy(update={"one_shot": regimes(found.one_shot), "ring": regimes(found.ring)})
