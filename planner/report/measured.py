"""The report of ``accuracy``: how far predictions are from measurements."""

from planner.check.accuracy import Accuracy, AccuracyGroup
from planner.report.blocks import Block, Facts, Tone, cell, heading, table
from planner.report.figures import percent, plural

HEADS = ("Measured", "Of", "Rows", "Median", "90th", "By config.", "Bias", "Within 20 %", "In band")
SHORT = {"output tokens per s": "output tokens/s", "total tokens per s": "tokens/s", " per accelerator": " each"}
"""Metrics in fewer words."""


def measured(answer: Accuracy) -> tuple[Block, ...]:
    """Compose the tables of errors, and what could not be predicted and why."""
    left = [(reason, cell(plural(count, "row"))) for reason, count in answer.not_expressible.items()]
    share = answer.expressible / answer.rows if answer.rows else 0.0
    return (
        heading(f"{plural(answer.expressible, 'row')} of {answer.rows} predicted", 1),
        Facts((("Predicted", cell(f"{percent(share)} of the rows")), *left)),
        heading("Errors, absolute, of predicted against measured"),
        table(HEADS, [_row(group) for group in answer.groups], HEADS[2:]),
        Facts((("By config.", cell("median over configurations of their median errors", Tone.QUIET)),)),
    )


def _row(group: AccuracyGroup) -> list[str]:
    by = group.by
    metric = by.metric.replace("_", " ")
    for long, short in SHORT.items():
        metric = metric.replace(long, short)
    return [
        f"{by.kind.replace('_', ' ')}: {metric}",
        ", ".join(name for name in (by.engine, by.hardware, by.model, by.source) if name) or "all",
        str(group.n),
        percent(group.median_ape),
        percent(group.p90_ape),
        percent(group.median_ape_by_configuration),
        f"{100.0 * group.bias:+.1f} %",
        percent(group.within_20),
        percent(group.band_coverage),
    ]
