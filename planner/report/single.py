"""The report of ``predict``: what one configuration does, where its time goes, and what it rests on."""

from planner.check.single import Banded, Prediction
from planner.report.blocks import Block, Cell, Facts, Tone, cell, heading, table
from planner.report.explained import memory_table, pass_blocks
from planner.report.figures import interval, number, quantity


def predicted(answer: Prediction) -> tuple[Block, ...]:
    """Compose the report of one configuration."""
    cut = answer.layout
    degrees = (("TP", cut.tp), ("PP", cut.pp), ("DP", cut.dp), ("EP", cut.ep))
    layout = " ".join(f"{name}{degree}" for name, degree in degrees if degree > 1 or name == "TP")
    point = answer.point
    loads = (
        (point.concurrency, "{} requests in flight"),
        (point.rate, "{} requests a second"),
        (point.batch, "one batch of {}"),
    )
    load = next(words.format(number(value)) for value, words in loads if value is not None)
    what = f"{answer.weights_dtype} weights, {answer.kv_dtype} KV cache"
    limits = f"at most {answer.token_budget} tokens and {answer.max_batch} sequences in a step of a rank"
    rows: list[tuple[str, Cell]] = [
        (
            "Replica",
            cell(f"{layout}, {answer.accelerators} x {answer.hardware}, {answer.engine}, {what}", under=limits),
        ),
        ("Load", cell(f"{load}, {number(point.input)} tokens in and {number(point.output)} out")),
        ("Prefill", _time(answer.prefill)),
    ]
    if answer.ttft is not None:
        rows.append(("Mean TTFT", _time(answer.ttft)))
    rows.append(("Mean TPOT", _time(answer.tpot)))
    made = answer.output_tokens_per_s
    rows.append(("Output", cell(f"{number(made.value)} tokens/s", under=_band(made, "token/s"))))
    if answer.flags is not None and answer.flags.unknown:
        rows.append(("Not known", cell(", ".join(answer.flags.unknown), Tone.WARN, under="may change the result")))
    decode, first = answer.decode_step, answer.prefill_step
    return (
        heading(f"{answer.model} on {answer.accelerators} x {answer.hardware}", 1),
        Facts(tuple(rows)),
        heading("One decode step"),
        *pass_blocks(decode),
        heading("One prefill"),
        *pass_blocks(first),
        heading("Memory of one accelerator"),
        memory_table(answer.memory),
        *_assumptions(answer),
    )


def _band(of: Banded, unit: str) -> str:
    return f"80 % band {interval(of.band, of.value, unit)}"


def _time(of: Banded) -> Cell:
    return cell(quantity(of.value, "s"), under=_band(of, "s"))


def _assumptions(answer: Prediction) -> tuple[Block, ...]:
    rows = [[item.name, item.value, item.source] for item in answer.assumptions]
    return (heading("Assumed"), table(("Input", "Value", "Why"), rows)) if rows else ()
