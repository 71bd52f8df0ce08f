"""What it costs to move activations between the accelerators of one replica.

Ring and one-shot forms: R. Thakur, R. Rabenseifner, W. Gropp, *Optimization of Collective Communication Operations in
MPICH*, IJHPCA 2005, section 4; an all-gather or reduce-scatter over p moves (p - 1) / p of the full message, an
all-reduce twice that. Pope et al. (MLSys 2023, appendix A.1) give the same without the latency.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.engine.chip import Chip
    from planner.numeric import Floats, Ints
    from planner.spec.efficiency import Collective, Regime


def by_group(regimes: "Mapping[int, Regime]", group: "Ints | Floats") -> "tuple[Floats, Floats]":
    """Latency [s] and bandwidth [B/s] for each group size, (n,), linear in log2 of the size between those measured.

    Beyond the largest measured size the latency grows with the number of ring steps and the bandwidth stays.
    """
    sizes = sorted(regimes)
    place = np.log2(np.maximum(group, 2))
    marks = np.log2(sizes)
    latency = np.interp(place, marks, [regimes[size].latency for size in sizes])
    bandwidth = np.interp(place, marks, [regimes[size].bandwidth for size in sizes])
    return latency * np.maximum(1.0, group / sizes[-1]), bandwidth


def all_reduce(message: "Floats", group: "Ints | Floats", collective: "Collective") -> "Floats":
    """Time [s] of an all-reduce of ``message`` bytes over ``group``, the faster of one-shot and ring; 0 for one member.

    Shapes broadcast: message (n, g) with group (n, 1) is the usual call.
    """
    p = np.asarray(group, float)
    latency, bandwidth = by_group(collective.ring, group)
    time = latency + 2.0 * (p - 1.0) / p * message / bandwidth
    if collective.one_shot:
        latency, bandwidth = by_group(collective.one_shot, group)
        time = np.minimum(time, latency + (p - 1.0) * message / bandwidth)
    return np.where(p > 1, time, 0.0)


def exchange(message: "Floats", group: "Ints | Floats", collective: "Collective") -> "Floats":
    """Time [s] of an all-gather, reduce-scatter or all-to-all whose full message is ``message`` bytes per member."""
    p = np.asarray(group, float)
    latency, bandwidth = by_group(collective.ring, group)
    return np.where(p > 1, latency + (p - 1.0) / p * message / bandwidth, 0.0)


def across(message: "Floats", chip: "Chip", messages: float = 1.0) -> "Floats":
    """Time [s] for one accelerator to send ``message`` bytes to other nodes in ``messages`` pieces."""
    return messages * chip.scale_out.latency + message / (chip.scale_out.bandwidth * chip.scale_out_link)
