"""From a run of a load generator to observations, or the reason why it tells nothing that is predicted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from planner.check.asked import SHORTEST
from planner.intake.results import BenchResult, Result
from planner.spec.observation import Observation

KEPT_UP = 0.95
"""Share of the offered rate that a server must have answered; below it a queue grew, and the run shows its length."""
FAILED = 0.01
"""Share of the requests that may have failed."""


class UnusableError(Exception):
    """A run that tells nothing that is predicted; the text is the reason."""


def observations(
    results: Sequence[Result], configuration: Mapping[str, object], source: str, unused: Counter[str]
) -> list[Observation]:
    """Describe runs as observations of a configuration; count the figures of those that cannot be used, by reason.

    ``configuration`` has the columns of an observation that say what served.
    """
    out: list[Observation] = []
    for number, result in enumerate(results, 1):
        try:
            load = _load(result.run, result.figures)
        except UnusableError as reason:
            unused[str(reason)] += max(len(result.figures), 1)
            continue
        where = f"{source}:{result.line or number}"
        out += [
            Observation.model_validate(
                {**configuration, **load, "id": f"{where}:{metric}", "source": source}
                | {"metric": metric, "value": value, "unit": "token/s" if "tokens" in metric else "s"}
            )
            for metric, value in result.figures.items()
            # A server that keeps up gives as many tokens as it is asked for: no news.
            if not (load["kind"] == "open_loop" and "tokens" in metric)
        ]
    return out


def _load(run: BenchResult, figures: Mapping[str, float]) -> dict[str, object]:
    """Columns of the load."""
    for reason in _reasons(run):
        raise UnusableError(reason)
    given, made = run.total_input_tokens / run.completed, run.total_output_tokens / run.completed
    row: dict[str, object] = {"input_tokens": given, "output_tokens": made, "num_prompts": str(run.completed)}
    row |= _spread(run)
    if (run.accept_length or 1.0) > 1.0:
        row["speculative"] = "draft"
    rate = float(run.request_rate)
    if np.isinf(rate):
        # Without a limit all requests come at once and none follows.
        return row | {
            "kind": "fixed_concurrency",
            "concurrency": min(run.max_concurrency or run.completed, run.completed),
        }
    if run.max_concurrency is not None and run.max_concurrency < run.completed:
        raise UnusableError("arrives at a rate, with a limit on the requests in flight")
    if run.burstiness != 1.0:
        raise UnusableError("arrivals that are not Poisson")
    # The last request comes when those before it have ended for the most part.
    last = figures.get("e2e_latency", figures.get("ttft_mean", 0.0) + (made - 1.0) * figures.get("tpot_mean", 0.0))
    if run.completed / max(run.duration - last, 1e-9) < KEPT_UP * rate:
        raise UnusableError("more arrived than was answered, so that a queue grew")
    return row | {"kind": "open_loop", "request_rate": rate}


def _reasons(run: BenchResult) -> Iterator[str]:
    if not run.completed or not run.total_input_tokens or not run.total_output_tokens:
        yield "no request was answered"
    elif run.failed > FAILED * (run.completed + run.failed):
        yield "requests failed"
    elif isinstance(run.request_rate, str):
        yield f"arrivals of {run.request_rate!r}"
    elif not run.request_rate > 0.0:
        yield "a rate of nought"


def _spread(run: BenchResult) -> dict[str, object]:
    """How the lengths were drawn: as the run says, or evenly around the mean as far as the requests themselves show."""
    if run.input_lens and run.output_lens:
        apart = np.mean(
            [np.std(some) / max(float(np.mean(some)), SHORTEST) for some in (run.input_lens, run.output_lens)]
        )
        # The standard deviation of an even draw is its half width over the root of 3.
        half = min(float(np.sqrt(3.0) * apart), 1.0 - SHORTEST)
        return {"length_jitter": f"uniform {1.0 - half:.4f}-{1.0 + half:.4f} of nominal"} if half > SHORTEST else {}
    if run.dataset_name == "random" and run.random_input_len and run.random_output_len:
        low = max(run.random_range_ratio or 0.0, SHORTEST)
        nominal = {"input_tokens": run.random_input_len, "output_tokens": run.random_output_len}
        return nominal | ({"length_jitter": f"uniform {low:g}-1 of nominal"} if low < 1.0 else {})
    return {}
