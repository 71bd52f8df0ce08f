"""Mean waits beyond exponential service: one server exactly, many servers by approximation.

In every function ``rate`` is the arrival rate [1/s], ``service`` the mean service time [s] of one server, and an SCV
is a squared coefficient of variation (variance over squared mean): 0 for constants, 1 for the exponential. Arguments
broadcast; at or above capacity a wait is infinite.
"""

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats, floats
from planner.queueing.erlang import mmc_wait


def mg1_wait(rate: npt.ArrayLike, service: npt.ArrayLike, service_scv: npt.ArrayLike) -> Floats:
    """Mean wait of M/G/1 [s]: rho S (1 + SCV) / (2 (1 - rho)). Exact for Poisson arrivals, first come first served.

    Source: Pollaczek 1930 and Khinchine 1932; Harchol-Balter, Performance Modeling and Design of Computer Systems,
    2013, chapter 23.

    >>> float(mg1_wait(2.0, 0.3, 4.0).round(6))
    1.125
    """
    arrival, mean, scv = floats(rate), floats(service), floats(service_scv)
    idle = 1 - arrival * mean
    stable = idle > 0
    return np.where(stable, arrival * mean**2 * (1 + scv) / (2 * np.where(stable, idle, 1.0)), np.inf)


def mm1_wait(rate: npt.ArrayLike, service: npt.ArrayLike) -> Floats:
    """Mean wait of M/M/1 [s]: rho S / (1 - rho). Source: Harchol-Balter 2013, section 13.1.

    >>> float(mm1_wait(0.8, 1.0).round(6))
    4.0
    """
    return mg1_wait(rate, service, 1.0)


def md1_wait(rate: npt.ArrayLike, service: npt.ArrayLike) -> Floats:
    """Mean wait of M/D/1 [s]: rho D / (2 (1 - rho)). Source: Pollaczek-Khinchine with an SCV of 0.

    >>> float(md1_wait(0.8, 1.0).round(6))
    2.0
    """
    return mg1_wait(rate, service, 0.0)


def residual_life(mean: npt.ArrayLike, second_moment: npt.ArrayLike) -> Floats:
    """Mean time until the end of the interval in progress at a random moment [s]: E[T^2] / (2 E[T]).

    ``mean`` E[T] [s] and ``second_moment`` E[T^2] [s^2]; 0 where the mean is 0. Twice the result is the mean length of
    the interval that a random moment falls into. Source: Harchol-Balter 2013, chapter 23 (inspection paradox).

    A step that takes 10 or 30 ms, equally often, ends on average after 12.5 ms.

    >>> float(residual_life(0.02, (0.01**2 + 0.03**2) / 2).round(6))
    0.0125
    """
    first, second = floats(mean), floats(second_moment)
    return np.where(first > 0, second / (2 * np.where(first > 0, first, 1.0)), 0.0)


def mg1_vacation_wait(
    rate: npt.ArrayLike,
    service: npt.ArrayLike,
    service_scv: npt.ArrayLike,
    vacation: npt.ArrayLike,
    vacation_second_moment: npt.ArrayLike,
) -> Floats:
    """Mean wait where an idle server leaves for vacations and returns only at their ends [s].

    The wait of M/G/1 plus, independently, the residual life of a vacation. An engine that looks for new requests
    between steps behaves so: ``vacation`` is the mean step [s], ``vacation_second_moment`` the mean square [s^2].

    Source: Doshi, Queueing Systems 1 (1986) (decomposition).

    >>> float(mg1_vacation_wait(2.0, 0.3, 4.0, 0.02, 0.0005).round(6))
    1.1375
    """
    return mg1_wait(rate, service, service_scv) + residual_life(vacation, vacation_second_moment)


def kingman(
    rate: npt.ArrayLike, service: npt.ArrayLike, arrival_scv: npt.ArrayLike, service_scv: npt.ArrayLike
) -> Floats:
    """Mean wait of GI/G/1 [s], approximately: rho / (1 - rho) times (SCV of gaps + SCV of service) / 2 times S.

    Exact for M/G/1 and in heavy traffic; 9 % low for gamma gaps of SCV 4 at rho 0.8.

    Source: Kingman, Mathematical Proceedings of the Cambridge Philosophical Society 57 (1961).

    >>> float(kingman(0.8, 1.0, 4.0, 0.25).round(6))
    8.5
    """
    return mm1_wait(rate, service) * (floats(arrival_scv) + floats(service_scv)) / 2


def allen_cunneen(
    servers: npt.ArrayLike,
    rate: npt.ArrayLike,
    service: npt.ArrayLike,
    arrival_scv: npt.ArrayLike,
    service_scv: npt.ArrayLike,
) -> Floats:
    """Mean wait of GI/G/c [s], approximately: that of M/M/c times (SCV of gaps + SCV of service) / 2.

    It keeps the probability of waiting of Poisson arrivals, so with bursty gaps it is far too low: by 34 % at an SCV of
    4 with service of 0.25, and by 43 % at 16 with exponential service (8 servers, rho 0.8). Above an SCV of 2 use
    `planner.queueing.renewal.gig_c_wait`.

    Source: Allen, Probability, Statistics and Queueing Theory, 2nd edition 1990.

    >>> float(allen_cunneen(8, 6.4, 1.0, 4.0, 0.25).round(7))
    0.6078097
    """
    return mmc_wait(servers, rate, service) * (floats(arrival_scv) + floats(service_scv)) / 2


def sakasegawa(
    servers: npt.ArrayLike,
    rate: npt.ArrayLike,
    service: npt.ArrayLike,
    arrival_scv: npt.ArrayLike,
    service_scv: npt.ArrayLike,
) -> Floats:
    """Mean wait of GI/G/c [s] without Erlang's formula, approximately.

    Half the sum of the SCVs times rho^(sqrt(2 (c + 1)) - 1) S / (c (1 - rho)).

    Exact for one server with Poisson arrivals. Limits as for `allen_cunneen`.

    Source: Sakasegawa, Annals of the Institute of Statistical Mathematics 29 (1977).

    >>> float(sakasegawa(8, 6.4, 1.0, 4.0, 0.25).round(7))
    0.6441613
    """
    c, mean = floats(servers), floats(service)
    spread = (floats(arrival_scv) + floats(service_scv)) / 2
    rho = floats(rate) * mean / c
    stable = rho < 1
    wait = spread * rho ** (np.sqrt(2 * (c + 1)) - 1) * mean / (c * (1 - np.where(stable, rho, 0.0)))
    return np.where(stable, wait, np.inf)


def priority_waits(rate: npt.ArrayLike, service: npt.ArrayLike, service_scv: npt.ArrayLike) -> Floats:
    """Mean wait of each class of a non-preemptive priority M/G/1 [s]; the first class is served first. Exact.

    W_k = W_0 / ((1 - s_(k-1)) (1 - s_k)), with s_k the load of classes 1 to k and W_0 = sum of rate_i E[S_i^2] / 2.
    Arguments and result have shape (k, ...), classes along the first axis. A class is infinite once the load up to and
    including it reaches 1; while it is, W_0 counts lower classes only for the capacity that is left, because a server
    that is never idle always has some request in service.

    Source: Cobham, Operations Research 2 (1954); Harchol-Balter 2013, chapter 31. The overloaded case is derived here.

    Three equal classes share a load of 0.8; their rate-weighted mean stays that of M/M/1, 4.

    >>> waits = priority_waits([0.2, 0.2, 0.4], 1.0, 1.0)
    >>> waits.round(4).tolist(), float((waits * [0.25, 0.25, 0.5]).sum().round(6))
    ([1.0, 1.6667, 6.6667], 4.0)
    """
    arrival, mean, scv = np.broadcast_arrays(floats(rate), floats(service), floats(service_scv))
    load = np.cumsum(arrival * mean, axis=0)
    before = load - arrival * mean
    # Served load of each class: what its betters leave of the server.
    served = np.clip(1 - before, 0.0, arrival * mean)
    residual = (served * mean * (1 + scv) / 2).sum(axis=0)
    stable = load < 1
    spare = np.where(stable, (1 - before) * (1 - load), 1.0)
    return np.where(stable, residual / spare, np.inf)


def mg_c_wait(
    servers: npt.ArrayLike, rate: npt.ArrayLike, service: npt.ArrayLike, service_scv: npt.ArrayLike
) -> Floats:
    """Mean wait of M/G/c [s], approximately, between those of M/D/c and M/M/c in proportion to the SCV of service.

    W(M/D/c) = W(M/M/c) (1 + g) / 2 with g = (1 - rho) (c - 1) (sqrt(4 + 5 c) - 2) / (16 rho c), at most 1. Exact for
    one server and for an SCV of 1; M/D/c within 5 % of simulation for up to 32 servers at rho 0.6 to 0.9.

    Source: Cosmetatos, INFOR 13 (1975) for M/D/c; interpolation as in Tijms, Stochastic Models, 1994, section 4.3.

    >>> mg_c_wait([1, 8, 8], [0.8, 6.4, 6.4], 1.0, [0.0, 0.0, 1.0]).round(4).tolist()
    [2.0, 0.1521, 0.286]
    """
    c, arrival = floats(servers), floats(rate)
    rho = arrival * floats(service) / c
    busy = np.clip(rho, 1e-12, 1.0)
    constant = (1 + np.minimum((1 - busy) * (c - 1) * (np.sqrt(4 + 5 * c) - 2) / (16 * busy * c), 1.0)) / 2
    scv = floats(service_scv)
    return floats(mmc_wait(c, arrival, service) * (scv + (1 - scv) * constant))
