"""Why a candidate is out. Reasons are bits: they add up, and a report counts each of them."""

from enum import IntFlag, auto
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.numeric import Ints


class Reason(IntFlag):
    """Why a candidate is out.

    >>> Reason.HEADS | Reason.MEMORY
    <Reason.HEADS|MEMORY: 65>
    """

    HEADS = auto()
    """TP divides neither the heads, nor the KV heads, nor is it a multiple of the KV heads."""
    WIDTH = auto()
    """TP does not divide the feed-forward width."""
    QUANT_BLOCK = auto()
    """A shard would cut through a quantisation block."""
    EXPERTS = auto()
    """EP does not divide the experts, or there are none."""
    LINKS = auto()
    """TP reaches beyond the links inside a node or rack, or the accelerators do not fill nodes evenly."""
    ENGINE = auto()
    """The engine version cannot serve this layout or format."""
    MEMORY = auto()
    """Weights, activations, reserve and adapters leave no room for the KV cache of the longest request."""
    TTFT = auto()
    """One prompt alone, on an idle replica, misses the TTFT promise too often."""
    TPOT = auto()
    """One sequence alone, on an idle replica, misses the TPOT promise too often."""
    LINK_RATE = auto()
    """The links cannot carry the KV of the offered requests."""
    SHARE = auto()
    """No number of replicas in the inventory keeps the promised share."""
    NODES = auto()
    """Needs more nodes than there are."""
    DOMINATED = auto()
    """Another candidate carries more on as many accelerators, by its means."""


DESCRIPTIONS = {
    Reason.HEADS: "attention heads do not divide",
    Reason.WIDTH: "feed-forward width does not divide",
    Reason.QUANT_BLOCK: "a shard cuts a quantisation block",
    Reason.EXPERTS: "experts do not divide",
    Reason.LINKS: "beyond the links of a node or rack",
    Reason.ENGINE: "the engine cannot load it",
    Reason.MEMORY: "out of memory",
    Reason.TTFT: "one prompt alone is too slow",
    Reason.TPOT: "one sequence alone is too slow",
    Reason.LINK_RATE: "links cannot carry the KV",
    Reason.SHARE: "the promised share is missed",
    Reason.NODES: "needs more nodes than there are",
    Reason.DOMINATED: "another carries more by its means",
}
"""The reasons in a few words, for reports."""


def tally(rejected: "Ints") -> dict[str, int]:
    """Count how often each reason occurs in a column of bit masks, by name; reasons overlap.

    >>> tally(np.array([0, 1, 65]))
    {'heads': 2, 'memory': 1}
    """
    counts = {reason: int(np.count_nonzero(rejected & int(reason))) for reason in Reason}
    return {str(reason.name).lower(): count for reason, count in counts.items() if count}
