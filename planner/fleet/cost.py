"""What a plan costs: accelerators by the hour, divided among the workloads that use them."""

from collections.abc import Sequence

DAY_HOURS = 24.0


def divide(total: float, used: Sequence[float]) -> list[float]:
    """Divide ``total`` by accelerator-seconds ``used``, so that the parts sum to it; evenly where nothing is used.

    >>> divide(12.0, [1.0, 2.0])
    [4.0, 8.0]
    """
    largest = max(used, default=0.0)
    if largest <= 0.0:
        return [total / len(used)] * len(used)
    # Shares of the largest keep their digits where the amounts themselves are too small to.
    parts = [part / largest for part in used]
    whole = sum(parts)
    return [total * part / whole for part in parts]


def per_successful_task(per_request: float, calls: int, success: float) -> float | None:
    """Cost of a task of ``calls`` calls that all must succeed, whatever the number of attempts: c calls / p^calls.

    Attempts are independent: with success p and cost c the expected cost of a success is c / p.

    >>> round(per_successful_task(0.02, 1, 0.8), 6)
    0.025
    """
    return per_request * calls / success**calls if success > 0.0 else None
