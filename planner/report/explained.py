"""The report of ``explain``: where each millisecond and each byte goes, and what lies next to the choice."""

from planner.plan.explanation import AcceleratorMemory, ExplainedPool, Explanation, Pass, Variant
from planner.report import phrases
from planner.report.blocks import Block, Cell, Facts, Line, Table, Tone, cell, heading, table
from planner.report.figures import number, percent, plural, quantity

RESOURCES = ("compute", "memory", "network", "overhead")


def explained(answer: Explanation, *, explain: bool = False) -> tuple[Block, ...]:
    """Compose the explanation; with ``explain``, the operators of the neighbours too."""
    shown = (answer.chosen, *answer.neighbours) if explain else (answer.chosen,)
    return (
        heading(f"{answer.scenario}, {answer.workload}: {_plan(answer.chosen)}", 1),
        _facts(answer),
        heading("Beside it"),
        _neighbours(answer),
        *(block for variant in shown for block in _variant(variant)),
        *_assumptions(answer),
    )


def _plan(variant: Variant) -> str:
    pools = " | ".join(_pool(item) for item in variant.pools)
    return f"{phrases.DECISIONS[variant.decision]}, {pools}"


def _pool(item: ExplainedPool) -> str:
    role = "" if item.role == "mixed" else f"{item.role} "
    count = "" if item.replicas is None else f" x{item.replicas}"
    return f"{role}{phrases.layout(item.layout)}{count}"


def _facts(answer: Explanation) -> Facts:
    parts = answer.chosen.ttft
    rows: list[tuple[str, Cell]] = [("Model", cell(answer.model))]
    if parts:
        wait = "n/a" if parts.wait is None else quantity(parts.wait, "s")
        total = "" if parts.wait is None else f"{quantity(sum(value for _, value in parts), 's')} = "
        rest = f"{quantity(parts.step_residual, 's')} rest of a step + {quantity(parts.prefill, 's')} prefill"
        rows.append(("Mean TTFT", cell(f"{total}{wait} wait + {rest} + {quantity(parts.transfer, 's')} KV transfer")))
    if answer.chosen.tpot is not None:
        rows.append(("Mean TPOT", cell(quantity(answer.chosen.tpot, "s"))))
    assumed = sum(item.basis == "assumed" for item in answer.assumptions)
    rows.append(("Inputs", cell(f"{len(answer.assumptions)}, {assumed} of them assumed", Tone.QUIET)))
    return Facts(tuple(rows))


def _neighbours(answer: Explanation) -> Table:
    heads = ("Plan", "Pools", "Mean TTFT", "Mean TPOT", "Good", "Accelerators", "USD/h", "Out because")
    rows = [_beside(variant) for variant in (answer.chosen, *answer.neighbours)]
    return table(heads, rows, heads[2:7])


def _beside(variant: Variant) -> list[str]:
    parts = variant.ttft
    ttft = None if parts is None or parts.wait is None else sum(value for _, value in parts)
    return [
        variant.change,
        _plan(variant),
        "" if ttft is None else quantity(ttft, "s"),
        "" if variant.tpot is None else quantity(variant.tpot, "s"),
        "" if variant.goodput_share is None else percent(variant.goodput_share),
        "" if variant.accelerators is None else str(variant.accelerators),
        "" if variant.cost_per_hour is None else number(variant.cost_per_hour),
        "; ".join(phrases.reason(name) for name in variant.rejected),
    ]


def _variant(variant: Variant) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for pool in variant.pools:
        for name, done in (("one decode step", pool.decode), ("one prefill", pool.prefill)):
            if done:
                blocks += [heading(f"{variant.change}, {_pool(pool)}: {name}"), *pass_blocks(done)]
        if pool.memory:
            blocks += [
                heading(f"{variant.change}, {_pool(pool)}: memory of one accelerator"),
                memory_table(pool.memory),
            ]
    return tuple(blocks)


def pass_blocks(done: Pass) -> tuple[Block, ...]:
    """Compose one pass, operator by operator."""
    rows = [
        [
            item.operator,
            str(item.count),
            *("" if value == 0 else quantity(value, "s") for value in (getattr(item, name) for name in RESOURCES)),
            quantity(item.total, "s"),
            percent(item.total / done.seconds) if done.seconds else "",
        ]
        for item in done.operators
    ]
    sums = [sum(getattr(item, name) for item in done.operators) for name in RESOURCES]
    rows.append(
        ["all", "", *("" if value == 0 else quantity(value, "s") for value in sums), quantity(done.seconds, "s"), ""]
    )
    heads = ("Operator", "Calls", *(name.capitalize() for name in RESOURCES), "Time", "Part")
    size = f"batch of {number(done.sequences)}, {number(done.tokens)} new tokens, {number(done.context)} cached in each"
    return (Facts((("Size", (Line(size, Tone.QUIET),)),)), table(heads, rows, heads[1:]))


def memory_table(memory: AcceleratorMemory) -> Table:
    """Compose the memory of one accelerator by kind."""
    kinds = [(name.capitalize() if name != "kv" else "KV", value) for name, value in memory if value]
    heads = ("Kind", *(name for name, _ in kinds))
    return table(heads, [["bytes", *(quantity(value, "B") for _, value in kinds)]], heads[1:])


def _assumptions(answer: Explanation) -> tuple[Block, ...]:
    rows = [
        [item.name, phrases.value_of(item.value, item.unit), item.basis, item.source] for item in answer.assumptions
    ]
    heads = ("Input", "Value", "Basis", "Source")
    return (heading(f"It rests on {plural(len(rows), 'input')}"), table(heads, rows)) if rows else ()
