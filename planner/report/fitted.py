"""The report of ``calibrate``: what the measurements tell, what they do not, and how well the card does."""

from planner.check.calibration import CalibrationFound, ErrorFound, FactorFound
from planner.report.blocks import Block, Cell, Facts, Tone, cell, heading, table
from planner.report.figures import number, percent, plural

FACTORS = ("Parameter", "Time", "Uncertain by", "Of before")
ERRORS = ("Measured", "Rows", "Before", "After", "Left out", "90th", "Bias")


def fitted(answer: CalibrationFound) -> tuple[Block, ...]:
    """Compose the report of a calibration."""
    known = [one for one in answer.factors if one.identified]
    rows: list[tuple[str, Cell]] = [
        ("Card", cell(f"{answer.engine} on {answer.hardware}, from {answer.start}", under=answer.written)),
        ("Measured", cell(f"{plural(answer.rows, 'row')} of {', '.join(answer.files)}", under=_range(answer))),
        *(("Not used", cell(f"{plural(count, 'row')}: {reason}")) for reason, count in answer.unused.items()),
    ]
    if answer.flags_unknown:
        rows.append(
            ("Not known", cell(", ".join(answer.flags_unknown), Tone.WARN, under="may have changed the result"))
        )
    return (
        heading(f"{plural(len(known), 'parameter')} calibrated: {answer.name}", 1),
        Facts(tuple(rows)),
        heading("What the measurements tell"),
        table(FACTORS, [_factor(one) for one in known], FACTORS[1:]),
        *_open(answer),
        heading("Errors, absolute, of predicted against measured"),
        table(ERRORS, [_error(one) for one in answer.errors], ERRORS[1:]),
        Facts((("Left out", cell("by fits without the run that a row belongs to", Tone.QUIET)),)),
    )


def _open(answer: CalibrationFound) -> tuple[Block, ...]:
    """Say what stays as it was, and which run would tell."""
    rows = [
        (_name(one), cell("stays as it was", under=f"would tell: {one.run}" if one.run else "no single run would tell"))
        for one in answer.factors
        if not one.identified
    ]
    return (heading("What they do not tell"), Facts(tuple(rows))) if rows else ()


def _name(one: FactorFound) -> str:
    name = one.name.replace("_", " ")
    return f"{name}, {one.format}" if one.format else name


def _factor(one: FactorFound) -> list[str]:
    return [_name(one), f"x {number(one.factor)}", percent(one.uncertainty), percent(one.narrowed)]


def _error(one: ErrorFound) -> list[str]:
    metric = one.metric.replace("_per_s", "/s").replace("_", " ")
    shares = [percent(share) for share in (one.before, one.after, one.left_out, one.left_out_p90)]
    return [f"{one.kind.replace('_', ' ')}: {metric}", str(one.rows), *shares, f"{100.0 * one.bias:+.1f} %"]


def _range(answer: CalibrationFound) -> str:
    """Say what was measured, in a line."""
    of = answer.range
    ends = [
        f"{word} {number(one[0])}" + (f" to {number(one[1])}" if one[0] != one[1] else "")
        for word, one in (
            ("TP", of.tp),
            ("input", of.input),
            ("output", of.output),
            ("in flight", of.in_flight),
        )
        if one[1] > 0
    ]
    return ", ".join((*of.models, *of.weights, *ends))
