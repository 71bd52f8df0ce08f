"""Everything that a recommendation holds, in sections, for those who ask why."""

from pydantic import JsonValue

from planner.plan.answer import Recommendation, WorkloadPlan
from planner.plan.predicted import Percentiles
from planner.report import phrases
from planner.report.blocks import Block, Cell, Facts, Line, Paragraph, Tone, cell, heading, table
from planner.report.figures import interval, number, percent, plural, quantity, rank

FIGURES = ("Replicas", "Spares", "Accelerators", "Nodes", "Batch", "Tokens/step", "Busy", "Load", "Answers below")


def detail(answer: Recommendation) -> tuple[Block, ...]:
    """Compose all sections; those without content are left out."""
    blocks = [block for plan in answer.workloads for block in _workload(plan)]
    return (
        *blocks,
        *_sensitivities(answer),
        *_rejected(answer),
        *_budgets(answer),
        *_assumptions(answer),
        _solver(answer),
    )


def _workload(plan: WorkloadPlan) -> tuple[Block, ...]:
    found = plan.predicted
    latencies = [_latency("TTFT", found.ttft)] if found.ttft else []
    latencies += [_latency("TPOT", found.tpot)] if found.tpot else []
    heads = ("Latency", "Mean", "p50", "p90", "p95", "p99", "Shown", "Value", "Band", "Promise")
    return (
        heading(f"{plan.name}: {phrases.DECISIONS[plan.decision]}"),
        _facts(plan),
        *((table(heads, latencies, heads[1:]),) if latencies else ()),
        _pools(plan),
        _memory(plan),
    )


def _facts(plan: WorkloadPlan) -> Facts:
    found, cost = plan.predicted, plan.cost
    rates = (
        f"{quantity(found.offered_rps, 'req/s')} offered, {quantity(found.goodput_rps, 'req/s')} good, "
        f"{quantity(found.output_tokens_per_s, 'tok/s')}, {percent(found.prefix_hit_rate)} of the input cached"
    )
    prices = [quantity(cost.per_hour, "USD/h")]
    for price, what in (
        (cost.per_million_output_tokens, "per million output tokens"),
        (cost.per_request, "per request"),
        (cost.per_successful_task, "per successful task"),
    ):
        prices += [f"{quantity(price, 'USD')} {what}"] if price is not None else []
    rows: list[tuple[str, Cell]] = [
        ("Model", cell(plan.model)),
        ("Why", tuple(Line(reason) for reason in plan.reasons) or cell("no reason given")),
        ("Revisit", _revisit(plan)),
        ("Busiest hour", cell(rates)),
        ("KV", cell(_kv(plan))),
        ("Node lost", cell(_failure(plan))),
        ("Cost", cell(", ".join(prices))),
    ]
    for name, value in plan.operations:
        if value is not None:
            rows.append((name.capitalize(), _settings(value)))
    return Facts(tuple(rows))


def _revisit(plan: WorkloadPlan) -> Cell:
    signals = (f"{item.signal} at {quantity(item.threshold, item.unit)}: {item.why}" for item in plan.revisit_when)
    return tuple(Line(text) for text in signals) or cell("no signal named")


def _kv(plan: WorkloadPlan) -> str:
    words = [f"{plan.kv.decision}, {quantity(plan.kv.bytes_per_token, 'B')} a token"]
    for value, what in ((plan.kv.link_bandwidth, "link"), (plan.kv.break_even_bandwidth, "moving pays above")):
        words += [f"{what} {quantity(value, 'B/s')}"] if value is not None else []
    return ", ".join(words)


def _failure(plan: WorkloadPlan) -> str:
    lost = plan.failure.one_node_lost
    words = [f"{percent(lost.capacity_share)} of the capacity left", f"{number(lost.requests_lost)} requests lost"]
    words += [f"good share {percent(lost.goodput_share)}"] if lost.goodput_share is not None else []
    words += [f"available {percent(plan.failure.availability)}"] if plan.failure.availability is not None else []
    return ", ".join(words)


def _settings(values: dict[str, JsonValue]) -> Cell:
    return cell(
        ", ".join(f"{key.replace('_', ' ')} {_setting(value)}" for key, value in values.items()) or "no setting"
    )


def _setting(value: JsonValue) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _latency(name: str, found: Percentiles) -> list[str]:
    values = (found.mean, found.p50, found.p90, found.p95, found.p99)
    value = "n/a" if found.at.value is None else quantity(found.at.value, "s")
    band = interval(found.at.band, found.limit, "s")
    unit = quantity(found.limit, "s").split(" ")[-1]
    shown = ["n/a" if part is None else quantity(part, "s") for part in values]
    return [
        name,
        *shown,
        rank(found.at.percentile),
        value,
        f"{band} {unit}" if band else "",
        quantity(found.limit, "s"),
    ]


def _pools(plan: WorkloadPlan) -> Block:
    heads = ("Pool", "Role", "Hardware", "Engine", "Weights", "KV", "Layout", "FFN", *FIGURES)
    rows = [
        [
            item.id,
            item.role,
            item.hardware,
            item.engine,
            item.weights_dtype,
            item.kv_dtype,
            phrases.layout(item.layout),
            item.layout.ffn,
            str(item.replicas),
            str(item.spare_replicas),
            str(item.accelerators),
            number(item.nodes),
            "" if item.max_batch is None else str(item.max_batch),
            "" if item.token_budget is None else str(item.token_budget),
            percent(item.utilisation),
            percent(item.load),
            quantity(item.answerable_below_rps, "req/s"),
        ]
        for item in plan.pools
    ]
    return table(heads, rows, FIGURES)


def _memory(plan: WorkloadPlan) -> Block:
    heads = ("Memory of one", "Weights", "KV", "Activations", "Reserve", "Capacity")
    rows = [[item.id, *(quantity(value, "B") for _, value in item.memory)] for item in plan.pools]
    return table(heads, rows, heads[1:])


def _sensitivities(answer: Recommendation) -> tuple[Block, ...]:
    rows = [
        [item.input, number(item.elasticity), "" if item.flips_at is None else phrases.factor(item.flips_at)]
        for item in answer.sensitivities
    ]
    note = "Elasticity: per cent that the objective moves for one per cent of the input."
    heads = ("Input", "Elasticity", "Flips at")
    return (heading("Sensitivities"), table(heads, rows, heads[1:]), Paragraph(Line(note, Tone.QUIET))) if rows else ()


def _rejected(answer: Recommendation) -> tuple[Block, ...]:
    ordered = sorted(answer.candidates.rejected.items(), key=lambda item: (-item[1], item[0]))
    rows = [[name, phrases.reason(name), f"{count:,}"] for name, count in ordered]
    if not rows:
        return ()
    title = f"Why candidates are out ({answer.candidates.tried:,} tried, reasons overlap)"
    return (heading(title), table(("Reason", "Meaning", "Candidates"), rows, ("Candidates",)))


def _budgets(answer: Recommendation) -> tuple[Block, ...]:
    rows = [
        [
            "met" if item.met else {"fail": "missed", "warn": "warning"}[item.severity],
            phrases.check(item),
            "" if item.margin is None else f"{number(item.margin * 100)} %",
            item.location or "",
        ]
        for item in answer.checks
    ]
    return (
        (heading("Budgets"), table(("Budget", "Figure and limit", "Margin", "At"), rows, ("Margin",))) if rows else ()
    )


def _assumptions(answer: Recommendation) -> tuple[Block, ...]:
    rows = [[item.name, phrases.value_of(item.value, item.unit), item.source] for item in answer.assumptions]
    title = f"Assumed: {plural(len(rows), 'input')}"
    return (heading(title), table(("Input", "Value", "Basis"), rows)) if rows else ()


def _solver(answer: Recommendation) -> Facts:
    gap = "" if answer.solver.gap is None else f", gap {percent(answer.solver.gap)}"
    return Facts((("Solver", cell(f"{answer.solver.status}{gap}")), ("Planner", cell(answer.planner_version))))
