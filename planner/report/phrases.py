"""How the parts of an answer are called in reports."""

from planner.engine.reasons import DESCRIPTIONS
from planner.plan.answer import CheckItem, Infeasible, Layout, Pool
from planner.report.figures import number, percent, plural, quantity

DECISIONS = {"together": "together", "split": "split", "attention_expert_split": "attention | experts"}
"""Decisions in a word or two."""
REASONS = {str(reason.name).lower(): text for reason, text in DESCRIPTIONS.items()}
"""Rejection reasons in a few words, by name."""
UNITS = {
    "ttft": "s",
    "tpot": "s",
    "deadline": "s",
    "power": "W",
    "memory": "B",
    "memory_margin": "share",
    "link_rate": "B/s",
    "share": "share",
    "goodput_share": "share",
    "utilisation": "share",
    "load": "share",
    "headroom": "share",
    "availability": "share",
    "cost_per_hour": "USD/h",
    "cost_per_million_output_tokens": "USD",
    "cost_per_successful_task": "USD",
}
"""SI units of metrics and of binding reasons; ``share`` for a part of one."""


def metric(name: str, value: float | None) -> str:
    """Write the value of a metric or of a binding reason.

    >>> metric("tpot_p95", 0.031), metric("utilisation", 0.91), metric("nodes", 12), metric("nodes", None)
    ('31 ms', '91 %', '12', 'none')
    """
    if value is None:
        return "none"
    stem = name.rsplit("_p", 1)[0] if name.rsplit("_p", 1)[-1].isdigit() else name
    unit = UNITS.get(stem, "")
    return percent(value) if unit == "share" else quantity(value, unit)


def reason(name: str) -> str:
    """Write a rejection reason in words; an unknown one as it is, with spaces.

    >>> reason("memory"), reason("not_yet_named")
    ('out of memory', 'not yet named')
    """
    return REASONS.get(name, name.replace("_", " "))


def tallied(rejected: dict[str, int], most: int) -> str:
    """Write counts of the ``most`` frequent rejection reasons; ties by name.

    >>> tallied({"heads": 12, "memory": 7012, "width": 3}, 2)
    '7,012 out of memory, 12 attention heads do not divide, and 1 more reason'
    """
    ordered = sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{count:,} {reason(name)}" for name, count in ordered[:most]]
    words += [f"and {plural(len(ordered) - most, 'more reason')}"] if len(ordered) > most else []
    return ", ".join(words)


def layout(degrees: Layout) -> str:
    """Write a layout by the degrees that differ from one; ``TP1`` where none does."""
    named = {"TP": degrees.tp, "PP": degrees.pp, "DP": degrees.dp, "EP": degrees.ep}
    return " ".join(f"{name}{degree}" for name, degree in named.items() if degree > 1) or "TP1"


def pool(item: Pool) -> str:
    """Write a pool in one line: role, layout, replicas and the spares among them."""
    role = "" if item.role == "mixed" else f"{item.role} "
    spares = f", {plural(item.spare_replicas, 'spare')}" if item.spare_replicas else ""
    return f"{role}{layout(item.layout)} x{item.replicas}{spares}"


def value_of(value: float | str | None, unit: str) -> str:
    """Write a value of a scenario field, which may be a name.

    >>> value_of(0.02, "s"), value_of("fp8", ""), value_of(None, "")
    ('20 ms', 'fp8', 'none')
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else quantity(value, unit)


def check(item: CheckItem) -> str:
    """Write a budget and the figure held against it."""
    name = item.metric.replace("_", " ") + (f" of {item.workload}" if item.workload else "")
    limits = [f"at least {metric(item.metric, item.min)}"] * (item.min is not None)
    limits += [f"at most {metric(item.metric, item.max)}"] * (item.max is not None)
    return f"{name} is {metric(item.metric, item.value)}, {' and '.join(limits) or 'no limit'}"


def binding(item: Infeasible) -> str:
    """Write what binds an infeasible workload: the best that can be had, and the limit."""
    words = reason(item.binding)
    if item.value is None and item.limit is None:
        return words
    return f"{words}: {metric(item.binding, item.value)} at best, {metric(item.binding, item.limit)} allowed"


def changes(item: Infeasible) -> list[str]:
    """Write the nearest changes that would free an infeasible workload."""
    return [f"{c.field} from {value_of(c.from_, c.unit)} to {value_of(c.to, c.unit)}" for c in item.nearest]


def factor(times: float) -> str:
    """Write a multiple.

    >>> factor(1.234)
    'x1.23'
    """
    return f"x{number(times)}"
