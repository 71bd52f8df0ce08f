"""Time to the end of one deterministic job whose work is split over devices: pipelined, or shared.

Poisson arrivals at ``rate`` R [1/s], uniform jobs that take ``service`` D [s] on one device, first come first served,
no batching. Arguments broadcast; at or above capacity a time is infinite.
"""

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats, floats
from planner.queueing.general import md1_wait


def pipeline_latency(rate: npt.ArrayLike, service: npt.ArrayLike, stages: npt.ArrayLike = 1) -> Floats:
    """Mean wait plus service of a pipeline of equal stages [s]: D + R D^2 / (2 p (p - R D)).

    Only the first of the ``stages`` p queues; p = 1 is M/D/1 on one device.

    Source: Zhong et al., DistServe, OSDI 2024, equation 1 (p = 1) and equation 2 (p = 2).

    >>> pipeline_latency(6.0, 0.1, [1, 2]).round(7).tolist()
    [0.175, 0.1107143]
    """
    work, parts = floats(service), floats(stages)
    return work + md1_wait(rate, work / parts)


def tensor_latency(rate: npt.ArrayLike, service: npt.ArrayLike, speedup: npt.ArrayLike) -> Floats:
    """Mean wait plus service on devices that share each job [s]: D / K + R D^2 / (2 K (K - R D)).

    ``speedup`` K is how many times faster the devices together finish a job than one alone.

    Source: Zhong et al., DistServe, OSDI 2024, equation 3.

    >>> tensor_latency([5.0, 6.0, 12.0], 0.1, 1.5).round(7).tolist()
    [0.0833333, 0.0888889, 0.2]
    """
    shared = floats(service) / floats(speedup)
    return shared + md1_wait(rate, shared)


def crossover(speedup: npt.ArrayLike) -> Floats:
    """Load R D at which two pipeline stages and two devices of ``speedup`` K in (1, 2) are equally fast.

    Below it sharing each job wins, above it the pipeline. Setting equation 2 equal to equation 3 of DistServe leaves a
    factor (3 K - 2) and x^2 - (K + 2) x + 8 K (K - 1) / (3 K - 2) = 0, of which this is the lower root.

    Source: derived from Zhong et al., DistServe, OSDI 2024, equations 2 and 3.

    >>> crossover([1.2, 1.5, 1.9]).round(3).tolist()
    [0.434, 0.936, 1.626]
    """
    k = floats(speedup)
    half = (k + 2) / 2
    return half - np.sqrt(np.maximum(half**2 - 8 * k * (k - 1) / (3 * k - 2), 0.0))
