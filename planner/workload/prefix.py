"""How much of the input is found in a prefix cache, against the cache's capacity.

Three ways, from most to least measured: replay a trace's block hashes through a least-recently-used cache; take the
popularity of the prefixes and Che's approximation; or take two figures, the share found with an unlimited cache and
the working set.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from planner.numeric import Floats
from planner.spec.scenario import Sharing

SMALL = 1e-9
"""Capacity below which a cache holds at most the item just used [items]."""


def hit_rate(sharing: Sharing, capacity: npt.ArrayLike) -> Floats:
    r"""Share of the input tokens found in a cache of ``capacity`` tokens.

    .. math:: h(C) = h_\infty \left(1 - e^{-C / W}\right)

    An LRU cache finds what was last used fewer than C tokens ago; where those distances are exponential with mean W,
    this is their distribution function. The replay of the Mooncake conversation trace lies within 0.03 of it at all six
    capacities from 0.5 to 51 million tokens (:math:`h_\infty` = 0.374, W = 6.7 million tokens at 3.4 req/s).

    Parameters
    ----------
    sharing
        ``prefix_share`` is :math:`h_\infty` and ``working_set`` is W [tokens]. Where either is missing, ``hit_rate``
        holds at every capacity.
    capacity : (n,) or scalar
        Tokens that the cache holds.

    Returns
    -------
    (n,) or scalar
        In [0, prefix_share], rising with capacity.

    References
    ----------
    R. L. Mattson et al., *Evaluation techniques for storage hierarchies*, IBM Systems Journal 9(2), 1970 (the hit ratio
    of LRU is the distribution of stack distances).

    Examples
    --------
    >>> hit_rate(Sharing(prefix_share=0.374, working_set=6.7e6), [0, 5.12e6, 10.24e6]).round(3).tolist()
    [0.0, 0.2, 0.293]

    """
    size = np.asarray(capacity, dtype=np.float64)
    if sharing.working_set is None or sharing.prefix_share == 0.0:
        return np.full_like(size, sharing.hit_rate)
    return np.asarray(-sharing.prefix_share * np.expm1(-size / sharing.working_set), dtype=np.float64)


def power_law(count: int, exponent: float) -> Floats:
    """Popularity of ``count`` items that falls as rank to the power of ``-exponent``; sums to 1, shape (count,).

    >>> power_law(3, 1.0).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    """
    weight = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.asarray(weight / weight.sum(), dtype=np.float64)


def lru_hits(popularity: npt.ArrayLike, capacity: float) -> Floats:
    r"""Probability that each item is found in a least-recently-used cache: Che's approximation.

    .. math:: h_i = 1 - e^{-p_i T}, \quad \sum_i h_i = C

    T is the characteristic time, in requests, for which an item stays after its last use.

    Parameters
    ----------
    popularity : (n,)
        Share of the requests that each item draws; sums to 1.
    capacity
        Items that the cache holds, at least 0.

    Returns
    -------
    (n,)
        Hit probability of each item; the overall one is ``popularity @ lru_hits(popularity, capacity)``.

    References
    ----------
    H. Che et al., *Hierarchical Web Caching Systems*, IEEE JSAC 20(7), 2002: the characteristic time of an LRU cache.

    Examples
    --------
    Ten equally popular items, of which five fit, are found every other time.

    >>> lru_hits([0.1] * 10, 5).round(3).tolist()[:2]
    [0.5, 0.5]
    >>> share = power_law(300, 1.0)
    >>> round(float(share @ lru_hits(share, 64)), 3)
    0.654

    """
    share = np.asarray(popularity, dtype=np.float64)
    if capacity < 0:
        msg = f"capacity must be at least 0, not {capacity:g}"
        raise ValueError(msg)
    used = int(np.count_nonzero(share))
    if capacity >= used:
        return np.asarray(share > 0, dtype=np.float64)
    if capacity < SMALL:
        return share * capacity  # h_i = p_i T and T = C to first order; the search would lose them in rounding

    def excess(log_time: float) -> float:
        return float(-np.expm1(-share * np.exp(log_time)).sum() - capacity)

    # bracket: each request adds at most one item, and T fills the cache once the rarest item alone would
    low = np.log(capacity) - 1.0
    high = np.log(-np.log1p(-capacity / used) / share[share > 0].min()) + 1.0
    return np.asarray(-np.expm1(-share * np.exp(brentq(excess, low, high))), dtype=np.float64)


def replayed_hit_rate(
    blocks: Iterable[Sequence[int]], tokens: Iterable[int], block: int, capacity: float = np.inf
) -> float:
    """Share of the input tokens that a least-recently-used cache would have found, in order of arrival.

    Parameters
    ----------
    blocks
        Of each request, the hashes of its blocks; a hash stands for the block and everything before it.
    tokens
        Of each request, its input tokens; the last block may be partly filled.
    block
        Tokens of a block.
    capacity
        Blocks that the cache holds.

    Examples
    --------
    >>> replayed_hit_rate([[1, 2], [1, 3], [1, 2]], [20, 20, 20], block=10)
    0.5
    >>> replayed_hit_rate([[1, 2], [1, 3], [1, 2]], [20, 20, 20], block=10, capacity=2)
    0.3333333333333333

    """
    cache: OrderedDict[int, None] = OrderedDict()
    found, total = 0, 0
    for hashes, length in zip(blocks, tokens, strict=True):
        depth = next((i for i, key in enumerate(hashes) if key not in cache), len(hashes))
        found += min(depth * block, length)
        total += length
        for key in hashes:
            cache[key] = None
            cache.move_to_end(key)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return found / total if total else 0.0
