"""What a lost node does, and how often it is lost."""

from math import comb

HOUR = 3600.0


def availability(nodes: int, spare: int, mtbf: float, mttr: float) -> float:
    """Probability that at most ``spare`` of ``nodes`` nodes are down.

    Nodes fail and are repaired independently: A = MTBF / (MTBF + MTTR), and the number down is binomial.

    >>> round(availability(16, 1, 6335 * 3600, 4 * 3600), 6)
    0.999952
    """
    up = mtbf / (mtbf + mttr)
    return min(1.0, sum(comb(nodes, k) * (1 - up) ** k * up ** (nodes - k) for k in range(min(spare, nodes) + 1)))
