"""The report on one screen: what to run, what it does, what it costs, and what would change it."""

from planner.plan.answer import Recommendation, WorkloadPlan
from planner.plan.predicted import DeadlineResult, Percentiles, Predicted
from planner.report import phrases
from planner.report.blocks import Block, Cell, Column, Facts, Heading, Line, Paragraph, Table, Tone, cell
from planner.report.figures import against, interval, number, percent, plural, quantity, rank, shares

TODAY = "today: "
"""How a reason begins that tells of what runs today."""
SHOWN = 3
"""Sensitivities and rejection reasons named on one screen."""
LEGEND = Paragraph(
    Line(
        "Second lines are 80 % bands. Pools and nodes count spares; load, latencies and shares are without.", Tone.QUIET
    )
)
"""What a newcomer cannot read off the table."""
FULL = 0.97
"""Load from which percentiles have no value."""


def overview(answer: Recommendation, *, explain: bool = False) -> tuple[Block, ...]:
    """Compose the screen; with ``explain``, details follow and are not pointed to."""
    blocks: list[Block] = [_title(answer), _cluster(answer)]
    if answer.infeasible:
        blocks.append(_binding(answer))
    if answer.workloads:
        blocks += [_workloads(answer.workloads), LEGEND, _why(answer.workloads)]
    return (*blocks, _rest(answer, "below" if explain else "listed by --explain"))


def _title(answer: Recommendation) -> Heading:
    missed = sum(item.severity == "fail" and not item.met for item in answer.checks)
    if not answer.feasible:
        names = {item.workload for item in answer.infeasible}
        text = f"{plural(len(names), 'workload')} cannot be promised"
        if not names or None in names:
            text = "the cluster cannot hold all promises"
        return Heading(Line(f"{answer.scenario}: no plan: {text}", Tone.BAD), 1)
    if not answer.within_budgets:
        text = f"{answer.scenario}: every promise holds, but {plural(missed, 'budget')} missed"
        return Heading(Line(text, Tone.BAD), 1)
    warned = sum(not item.met for item in answer.checks)
    if warned:
        text = f"{answer.scenario}: every promise holds, with {plural(warned, 'warning')} of a budget"
        return Heading(Line(text, Tone.WARN), 1)
    budgets = ", within all budgets" if answer.checks else ""
    return Heading(Line(f"{answer.scenario}: every promise holds{budgets}", Tone.GOOD), 1)


def _cluster(answer: Recommendation) -> Paragraph:
    use = answer.cluster
    spare = f" (spares fill {use.spare_nodes})" if use.spare_nodes else ""
    words = [
        f"{use.nodes_used:,} of {plural(use.nodes, 'node')} used{spare}, {use.nodes - use.nodes_used:,} left",
        f"{use.accelerators_used:,} of {use.accelerators:,} accelerators",
        quantity(use.cost_per_hour, "USD/h"),
    ]
    words += [quantity(use.power_watts, "W")] if use.power_watts is not None else []
    return Paragraph(Line("  ·  ".join(words)))


def _workloads(plans: tuple[WorkloadPlan, ...]) -> Table:
    ranks = {part.at.percentile for plan in plans for part in (plan.predicted.ttft, plan.predicted.tpot) if part}
    common = f" {rank(ranks.pop())}" if len(ranks) == 1 else ""
    figures = ("Nodes", "Load", f"TTFT{common}", f"TPOT{common}", "Good %", "USD per\nM tokens")
    columns = (Column("Workload"), Column("Pools"), *(Column(head, figures=True) for head in figures))
    return Table(columns, tuple(_row(plan, ranked=not common) for plan in plans))


def _row(plan: WorkloadPlan, *, ranked: bool) -> tuple[Cell, ...]:
    """Fill one row; ``ranked`` where each latency has to name its own percentile."""
    found = plan.predicted
    shared = sorted({other for item in plan.pools for other in item.shared_with})
    pools = [Line(phrases.pool(item)) for item in plan.pools]
    pools += [Line(f"shared with {', '.join(shared)}", Tone.QUIET)] if shared else []
    if found.deadline:
        ttft, tpot = _finish(found.deadline), cell("")
    else:
        ttft, tpot = _latency(found.ttft, ranked=ranked), _latency(found.tpot, ranked=ranked)
    price = plan.cost.per_million_output_tokens
    return (
        (Line(plan.name, Tone.STRONG), Line(phrases.DECISIONS[plan.decision])),
        tuple(pools),
        tuple(Line(number(item.nodes)) for item in plan.pools),
        tuple(Line(percent(item.load), Tone.WARN if item.load >= FULL else Tone.PLAIN) for item in plan.pools),
        ttft,
        tpot,
        _share(found),
        cell("none" if price is None else f"{price:,.2f}"),
    )


def _latency(found: Percentiles | None, *, ranked: bool) -> Cell:
    if found is None:
        return cell("none")
    missed = found.at.value is None or found.at.value > found.limit
    band = interval(found.at.band, found.limit, "s")
    text = against(found.at.value, found.limit, "s")
    prefix = f"{rank(found.at.percentile)} " if ranked else ""
    return cell(text, Tone.WARN if missed else Tone.PLAIN, under=f"{prefix}{band}".rstrip())


def _finish(run: DeadlineResult) -> Cell:
    text = against(run.finish, run.limit, "s")
    return cell(text, Tone.PLAIN if run.met else Tone.BAD, under=f"done {interval(run.band, run.limit, 's')}".rstrip())


def _share(found: Predicted) -> Cell:
    share, required = found.goodput_share, found.goodput_share_required
    if share is None:
        return cell("")
    if required is None:
        return cell(percent(share))
    low, high = found.goodput_share_band or (None, None)
    least, most = shares((share if low is None else low, share if high is None else high), required)
    words = f"{shares((share,), required)[0]} of {percent(required).removesuffix(' %')}"
    return cell(words, Tone.GOOD if share >= required else Tone.BAD, under=f"{least} to {most}")


def _why(plans: tuple[WorkloadPlan, ...]) -> Facts:
    """One line for each workload: its weightiest reason."""
    return Facts(
        tuple((f"{p.name} on {p.model}", cell(p.reasons[0] if p.reasons else "no reason given")) for p in plans)
    )


def _binding(answer: Recommendation) -> Facts:
    rows = []
    for item in answer.infeasible:
        nearest = "; or ".join(phrases.changes(item)) or "none found"
        lines = (Line(phrases.binding(item), Tone.BAD), Line(f"nearest change: {nearest}"))
        rows.append((item.workload or "cluster", lines))
    return Facts(tuple(rows))


def _today(plans: tuple[WorkloadPlan, ...]) -> tuple[Line, ...]:
    """Say what runs today, a line for each workload that says so among its reasons."""
    found = [(plan.name, reason) for plan in plans for reason in plan.reasons if reason.startswith(TODAY)]
    return tuple(Line(f"{name}: {reason.removeprefix(TODAY)}") for name, reason in found)


def _rest(answer: Recommendation, where: str) -> Facts:
    tried = phrases.tallied(answer.candidates.rejected, SHOWN)
    rows = [
        ("Today", _today(answer.workloads)) if _today(answer.workloads) else None,
        ("Holds", cell(_holds(answer.workloads))) if answer.workloads else None,
        ("Node lost", cell(_failure(answer.workloads))) if answer.workloads else None,
        ("Runner-up", cell(_runner_up(answer))) if answer.feasible else None,
        ("Flips at", cell(_flips(answer))) if answer.feasible else None,
        ("Budgets", _budgets(answer)) if answer.checks else None,
        ("Tried", cell(plural(answer.candidates.tried, "candidate") + (f"; out: {tried}" if tried else ""))),
        ("Assumed", cell(f"{plural(len(answer.assumptions), 'input')}, {where}", Tone.QUIET)),
    ]
    return Facts(tuple(row for row in rows if row is not None))


def _holds(plans: tuple[WorkloadPlan, ...]) -> str:
    """Say how likely each promise holds, given the bands."""
    known = [(plan.name, plan.predicted.promise_probability) for plan in plans]
    words = [f"{name} {percent(chance)}" for name, chance in known if chance is not None]
    return f"with a probability of {', '.join(words)}, given the bands" if words else "not judged"


def _failure(plans: tuple[WorkloadPlan, ...]) -> str:
    held = [(plan.failure.one_node_lost.goodput_share, plan.name) for plan in plans]
    shares = [(share, name) for share, name in held if share is not None]
    if not shares:
        return "no interactive workload"
    share, name = min(shares, key=lambda pair: pair[0])
    # Workloads that share pools lose the same requests, which count once.
    lost = {tuple(pool.id for pool in plan.pools): plan.failure.one_node_lost.requests_lost for plan in plans}
    flight = f"{sum(lost.values()):,.0f} requests in flight"
    return f"{name} is hit most and keeps {percent(share)}; at most {flight} are lost"


def _runner_up(answer: Recommendation) -> str:
    other = answer.runner_up
    if other is None:
        return "none differs in kind"
    if other.delta == 0:
        return f"as good: {'; '.join(other.changes) or 'the same pools'}"
    base = other.objective - other.delta
    worse = f"{number(abs(other.delta / base) * 100)} % worse" if base else f"worse by {number(abs(other.delta))}"
    chance = f", cheaper after all with {percent(other.probability)}" if other.probability > 0.0 else ""
    return f"{worse}{chance}: {'; '.join(other.changes) or 'the same pools'}"


def _flips(answer: Recommendation) -> str:
    flips = [item for item in answer.sensitivities if item.flips_at is not None]
    nearest = sorted(flips, key=lambda item: (abs((item.flips_at or 1.0) - 1.0), item.input))[:SHOWN]
    words = ", ".join(f"{item.input} {phrases.factor(item.flips_at or 1.0)}" for item in nearest)
    more = len(flips) - len(nearest)
    return (words + (f" ({more} more)" if more else "")) or "no single input within the range tried"


def _budgets(answer: Recommendation) -> Cell:
    missed = [item for item in answer.checks if not item.met]
    met = len(answer.checks) - len(missed)
    lines = [Line(f"{met} of {plural(len(answer.checks), 'budget')} met")]
    for item in missed:
        word, tone = ("missed", Tone.BAD) if item.severity == "fail" else ("warning", Tone.WARN)
        lines.append(Line(f"{word}: {phrases.check(item)}", tone))
    return tuple(lines)
