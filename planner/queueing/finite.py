"""Systems with a limited number of places, whose service may depend on how many are in: birth-death chains."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.numeric import Floats, floats


@dataclass(frozen=True, slots=True, eq=False)
class FiniteQueue:
    """Steady state of a system that turns requests away when it is full; every column has the shape of the rate."""

    throughput: Floats
    """Requests served [1/s]."""
    blocked: Floats
    """Share of requests that are turned away."""
    busy: Floats
    """Mean number of requests in service."""
    wait: Floats
    """Mean wait of those who enter [s]."""
    sojourn: Floats
    """Mean time in the system of those who enter [s]."""


def batch_service_rates(prefill: npt.ArrayLike, decode: npt.ArrayLike, output: npt.ArrayLike) -> Floats:
    """Rate at which a batch completes requests, for batches of 1, 2, ... m requests [1/s].

    Each request takes one prefill and ``output`` - 1 decode steps, so n of them complete at
    n / (prefill(n) + (output - 1) decode(n)). ``prefill`` and ``decode`` are the step times [s] at each batch size,
    (m,) or (r, m); ``output`` [tokens] is a scalar or (r, 1).

    Source: the latency model of the llm-inferno optimizer (linear step times, exponential output lengths).

    >>> batch = np.arange(1, 9)
    >>> rates = batch_service_rates(0.0052 + 0.00128 * batch, 0.02058 + 0.00041 * batch, 64)
    >>> rates[[0, 7]].round(4).tolist()
    [0.7525, 5.2679]
    """
    first, step = floats(prefill), floats(decode)
    batch = np.arange(1, first.shape[-1] + 1)
    return floats(batch / (first + (floats(output) - 1) * step))


def _birth_death(rate: Floats, completion: Floats, servers: npt.NDArray[np.generic], places: Floats) -> FiniteQueue:
    """Steady state where ``completion`` (..., K) is the rate of leaving 1, 2, ... K; ``places`` cuts states off."""
    count = np.arange(completion.shape[-1] + 1)
    some = rate > 0
    arrival = np.where(some, rate, 1.0)[..., None]
    steps = np.log(arrival / completion)
    logs = np.concatenate([np.zeros((*steps.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1)
    logs = np.where(count <= places[..., None], logs, -np.inf)
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    share = weight / weight.sum(axis=-1, keepdims=True)
    full = np.where(count == places[..., None], share, 0.0).sum(axis=-1)
    number = share @ count
    busy = (share * np.minimum(count, servers[..., None])).sum(axis=-1)
    # What enters equals what leaves; summed over the states that work, it keeps its digits when nearly all is blocked.
    throughput = (share[..., 1:] * completion).sum(axis=-1)
    alone = 1 / completion[..., 0]
    return FiniteQueue(
        throughput=np.where(some, throughput, 0.0),
        blocked=np.where(some, full, 0.0),
        busy=np.where(some, busy, 0.0),
        wait=np.where(some, np.maximum(number - busy, 0.0) / throughput, 0.0),
        sojourn=np.where(some, number / throughput, alone),
    )


def state_dependent_queue(rate: npt.ArrayLike, completion: npt.ArrayLike, room: int) -> FiniteQueue:
    """Steady state of M/M(n)/1/K: continuous batching whose pace depends on the batch, with a bounded queue. Exact.

    p_n = p_0 times the product over k <= n of rate / mu(k); X = rate (1 - p_K); sojourn = E[n] / X;
    wait = (E[n] - E[min(n, m)]) / X.

    ``rate`` [1/s] has shape (r,) or is a scalar; ``completion`` mu (m,) or (r, m) [1/s] is the rate of completing with
    1, 2, ... m in service, above 0; ``room`` is the number of places to wait, so K = m + room.

    Source: birth-death balance, as in Harchol-Balter 2013, chapter 14, and in the llm-inferno optimizer.

    >>> batch = np.arange(1, 9)
    >>> rates = batch_service_rates(0.0052 + 0.00128 * batch, 0.02058 + 0.00041 * batch, 64)
    >>> queue = state_dependent_queue(np.array([2.0, 4.0]), rates, room=24)
    >>> queue.sojourn.round(5).tolist(), queue.wait.round(6).tolist()
    ([1.40812, 1.75699], [0.003411, 0.277312])
    """
    arrival, mu = floats(rate), floats(completion)
    inside = np.broadcast_to(mu, (*arrival.shape, mu.shape[-1]))
    waiting = np.broadcast_to(inside[..., -1:], (*arrival.shape, room))
    batch = np.full(arrival.shape, mu.shape[-1])
    return _birth_death(arrival, np.concatenate([inside, waiting], axis=-1), batch, batch + float(room))


def mmck(servers: npt.ArrayLike, rate: npt.ArrayLike, service: npt.ArrayLike, places: npt.ArrayLike) -> FiniteQueue:
    """Steady state of M/M/c/K: ``servers`` c, and K >= c ``places`` in all, those in service included. Exact.

    ``rate`` [1/s], mean ``service`` [s] and the two counts broadcast to (n,). Source: Harchol-Balter 2013, chapter 14.

    Without room to wait it blocks like Erlang B; with ample room it waits like M/M/8.

    >>> tight, ample = mmck(8, 10.0, 1.0, 8), mmck(8, 6.4, 1.0, 200)
    >>> float(tight.blocked.round(7)), float(ample.wait.round(7))
    (0.3383184, 0.2860281)
    """
    c, arrival, mean, most = np.broadcast_arrays(floats(servers), floats(rate), floats(service), floats(places))
    states = np.arange(1, int(most.max(initial=1)) + 1)
    completion = np.minimum(states, c[..., None]) / mean[..., None]
    return _birth_death(arrival, completion, c, most)
