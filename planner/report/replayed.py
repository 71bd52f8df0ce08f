"""The report of ``simulate``: the replay of a plan beside what the closed forms say of it."""

from planner.check.simulated import SimulatedWorkload, Simulation
from planner.report.blocks import Block, Cell, Column, Facts, Line, Table, Tone, cell, heading
from planner.report.figures import number, percent, quantity

HEADS = ("Workload", "Good %", "Mean TTFT", "TTFT", "Mean TPOT", "TPOT")


def replayed(answer: Simulation) -> tuple[Block, ...]:
    """Compose the report of a replay; the first line of a figure is replayed, the second predicted."""
    broken = [one.name for one in answer.workloads if not one.holds]
    title = "every promise holds" if not broken else f"{' and '.join(broken)} would miss"
    rows: list[tuple[str, Cell]] = [
        ("Replayed", cell(f"{number(answer.requests)} requests, {number(answer.hours)} h at the busiest hour's rate")),
        ("Seed", cell(str(answer.seed))),
    ]
    if answer.left_out:
        rows.append(("Left out", cell(f"{', '.join(answer.left_out)}: work with a deadline is not replayed")))
    columns = tuple(Column(head, head != "Workload") for head in HEADS)
    again = [
        (one.name, one.simulated) for one in answer.workloads if one.simulated.recomputed or one.simulated.rejected
    ]
    rows += [
        (name, cell(f"{number(of.recomputed)} times computed again, {of.rejected} requests that nothing can hold"))
        for name, of in again
    ]
    return (
        heading(f"{answer.scenario}: {title}", 1),
        Facts(tuple(rows)),
        Table(columns, tuple(_row(one) for one in answer.workloads)),
        Facts((("Second lines", cell("closed forms, which recommend plans with", Tone.QUIET)),)),
    )


def _row(one: SimulatedWorkload) -> tuple[Cell, ...]:
    said, seen = one.predicted, one.simulated
    low, high = seen.goodput_share_interval
    tone = Tone.GOOD if one.holds else Tone.BAD
    wanted = said.goodput_share_required
    share = (
        Line(f"{_share(seen.goodput_share)} of {_share(wanted or 0.0)}", tone),
        Line(f"{_share(low)} to {_share(high)}; {percent(said.goodput_share)}", Tone.QUIET),
    )
    figures = [cell(one.name), share]
    for done, closed in ((seen.ttft, said.ttft), (seen.tpot, said.tpot)):
        figures.append(cell(quantity(done.mean, "s"), under=_closed(None if closed is None else closed.mean)))
        at = None if closed is None else closed.at.value
        figures.append(cell(f"{quantity(done.at, 's')} of {quantity(done.limit, 's')}", under=_closed(at)))
    return tuple(figures)


def _share(value: float) -> str:
    return f"{100.0 * value:.1f}"


def _closed(value: float | None) -> str:
    return "no steady state" if value is None else quantity(value, "s")
