"""Budgets: limits on figures of an answer, and the units in which each figure is limited."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from planner.errors import shorten
from planner.spec.card import Card
from planner.units import DIMENSIONS, read_quantity

Metric = Literal[
    "nodes",
    "accelerators",
    "cost_per_hour",
    "power",
    "utilisation",
    "load",
    "goodput_share",
    "ttft_p50",
    "ttft_p90",
    "ttft_p95",
    "ttft_p99",
    "tpot_p50",
    "tpot_p90",
    "tpot_p95",
    "tpot_p99",
    "headroom",
    "availability",
    "memory_margin",
    "cost_per_million_output_tokens",
    "cost_per_successful_task",
]
"""Figures that a budget may limit."""
SHARES = frozenset({"utilisation", "load", "goodput_share", "availability", "memory_margin"})
"""Metrics between 0 and 1."""
INTERACTIVE = frozenset({"load", "goodput_share", "headroom", "availability"})
"""Metrics that work with a deadline does not have, beside TTFT and TPOT."""
Severity = Literal["fail", "warn"]


def unit_of(metric: Metric) -> str:
    """SI unit of a metric; empty for a plain number.

    >>> unit_of("ttft_p95"), unit_of("cost_per_hour"), unit_of("nodes")
    ('s', 'USD/h', '')
    """
    if metric.startswith(("ttft", "tpot")):
        return "s"
    if metric == "cost_per_hour":
        return "USD/h"
    if metric.startswith("cost"):
        return "USD"
    return "W" if metric == "power" else ""


def of_promises(metric: Metric) -> bool:
    """Whether only work with a promise of TTFT and TPOT has the metric."""
    return metric in INTERACTIVE or metric.startswith(("ttft", "tpot"))


def read_limit(metric: Metric, written: float | str) -> float:
    """Read a limit as a figure in the metric's SI unit.

    Raises
    ------
    ValueError
        Where a unit is missing, wrong or too many, or the figure is out of range; says what would be right.

    Examples
    --------
    >>> read_limit("tpot_p99", "60 ms"), read_limit("load", 0.8)
    (0.06, 0.8)

    """
    unit = unit_of(metric)
    if unit:
        whole = int(written) if isinstance(written, float) and written.is_integer() else written
        try:
            value = read_quantity(whole, unit)
        except ValueError as error:
            msg = f"{metric} has the unit {unit}: {error}"
            raise ValueError(msg) from error
    elif isinstance(written, str):
        msg = f"{shorten(written)} must be a plain number for {metric}, for example {_plain(metric)}"
        raise ValueError(msg)
    else:
        value = written
    if value < 0.0 or (metric in SHARES and value > 1.0):
        example = repr(DIMENSIONS[unit].example) if unit else _plain(metric)
        bounds = "between 0 and 1" if metric in SHARES else "at least 0"
        msg = f"{written} must be {bounds} for {metric}, for example {example}"
        raise ValueError(msg)
    return value


def _plain(metric: Metric) -> str:
    """Return a usual limit of a metric without a unit."""
    if metric in SHARES:
        return "0.9"
    return "0.2" if metric == "headroom" else "16"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit on one figure."""

    metric: Metric
    workload: str | None
    severity: Severity
    lower: bool
    """Whether the figure must be at least ``value``; else at most."""
    value: float
    """SI."""


class Budget(Card):
    """A limit on one figure of the answer: text with a unit, or a plain number where the figure has none."""

    metric: Metric
    workload: str | None = None
    """Where absent: the total, or the worst of all workloads."""
    min: float | str | None = None
    max: float | str | None = None
    warn_min: float | str | None = None
    """Like ``min``, but only warns."""
    warn_max: float | str | None = None
    """Like ``max``, but only warns."""

    @field_validator("min", "max", "warn_min", "warn_max")
    @classmethod
    def _in_its_unit(cls, value: float | str | None, info: ValidationInfo) -> float | str | None:
        metric = info.data.get("metric")
        if value is not None and metric is not None:
            read_limit(metric, value)
        return value

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        steps = [(name, getattr(self, name)) for name in ("min", "warn_min", "warn_max", "max")]
        given = [(name, written, read_limit(self.metric, written)) for name, written in steps if written is not None]
        if not given:
            raise ValueError("a budget needs a limit: min, max, warn_min or warn_max")
        for (low, written, below), (high, other, above) in pairwise(given):
            if below > above:
                msg = f"{low} {written} is above {high} {other}; limits rise from min over warn_min and warn_max to max"
                raise ValueError(msg)
        if self.metric == "power" and self.workload is not None:
            raise ValueError("power is known of the whole cluster only: leave workload out")
        return self

    def limits(self) -> tuple[Limit, ...]:
        """Limits in SI units, those that fail first."""
        kinds: tuple[tuple[float | str | None, Severity, bool], ...] = (
            (self.min, "fail", True),
            (self.max, "fail", False),
            (self.warn_min, "warn", True),
            (self.warn_max, "warn", False),
        )
        return tuple(
            Limit(self.metric, self.workload, severity, lower, read_limit(self.metric, written))
            for written, severity, lower in kinds
            if written is not None
        )


def misfits(budgets: Sequence[Budget], interactive: Sequence[str]) -> Iterator[tuple[int, str, str, str]]:
    """Yield what is wrong with budgets as parts of one scenario: (index, field, value, problem).

    ``interactive`` are the names of the workloads with a promise of TTFT and TPOT.
    """
    seen: set[tuple[str, str | None]] = set()
    for index, budget in enumerate(budgets):
        metric, workload = budget.metric, budget.workload
        if (metric, workload) in seen:
            of = f" of {workload!r}" if workload else ""
            yield index, "metric", metric, f"{metric}{of} is limited twice; write one budget with all its limits"
        seen.add((metric, workload))
        if of_promises(metric) and workload is not None and workload not in interactive:
            known = f", for example {interactive[0]!r}" if interactive else ""
            problem = f"{workload!r} has a deadline and so no {metric}; name a workload with ttft and tpot{known}"
            yield index, "workload", workload, problem
        elif of_promises(metric) and not interactive:
            yield index, "metric", metric, f"{metric} needs a workload with ttft and tpot, and all have deadlines"
