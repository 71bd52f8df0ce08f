"""Statistics of the public traces that ``scenarios/orbit.yaml`` rests on.

Run ``python benchmarks/trace_statistics.py``. Traces are read from the folder that the environment variable
``PLANNER_SHARED`` names, or from ``shared`` beside the repository. The same files give the same figures.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.workload.arrivals import (
    golden_shifts,
    gridded_dispersion,
    index_of_dispersion,
    length_quantiles,
    quantised_grid,
    superpose,
)
from planner.workload.prefix import replayed_hit_rate

LEVELS = (0, 10, 25, 50, 65, 75, 85, 90, 95, 98, 99, 99.5, 99.9, 100)
"""Percentiles of the length tables."""
WINDOWS = (1, 10, 60)
"""Windows of the index of dispersion [s]."""
STEPS = (1, 3, 20)
"""Windows of the index of dispersion of the Mooncake trace, in steps of its 3 s grid."""
COPIES = 12
"""Shifted copies of the code trace that make one busy stream."""
BLOCK = 512
"""Tokens of a block in the Mooncake trace."""
CAPACITIES = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Cache sizes of the replay [blocks]."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Columns of one trace, shape (n,)."""

    times: npt.NDArray[np.float64]
    """Arrivals after the first one [s]."""
    input: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]
    blocks: tuple[Sequence[int], ...] = ()
    """Hashes of the input's blocks, where the trace has them."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the scenario takes from a stream."""

    requests: int
    rate: float
    """Mean rate [req/s]."""
    grid: float | None
    """Step that time stamps were rounded to [s]."""
    dispersion: dict[int, float]
    """Index of dispersion by window [s]."""


def shared_folder() -> Path:
    """Where the traces lie."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    return Path(os.environ.get("PLANNER_SHARED", beside))


def read_azure(path: Path) -> Trace:
    """Read an Azure LLM inference trace of 2023: time stamp, context tokens, generated tokens."""
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[1:] if line]
    stamps = [datetime.fromisoformat(row[0][:26]) for row in rows]
    times = np.array([(stamp - stamps[0]).total_seconds() for stamp in stamps])
    return Trace(times, np.array([int(row[1]) for row in rows]), np.array([int(row[2]) for row in rows]))


def read_mooncake(path: Path) -> Trace:
    """Read a Mooncake trace: time stamp [ms], lengths and block hashes."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return Trace(
        times=np.array([row["timestamp"] for row in rows]) / 1000.0,
        input=np.array([row["input_length"] for row in rows]),
        output=np.array([row["output_length"] for row in rows]),
        blocks=tuple(row["hash_ids"] for row in rows),
    )


def figures(times: npt.NDArray[np.float64], horizon: float) -> Figures:
    """Rate and burstiness of a stream."""
    return Figures(
        requests=len(times),
        rate=len(times) / horizon,
        grid=quantised_grid(times),
        dispersion={window: index_of_dispersion(times, window) for window in WINDOWS},
    )


def superposed(trace: Trace, copies: int = COPIES) -> Figures:
    """Figures of shifted copies of a trace laid over each other, by multiples of the golden ratio."""
    horizon = float(trace.times[-1])
    inside = trace.times[trace.times < horizon]
    return figures(superpose(inside, golden_shifts(copies, horizon), horizon), horizon)


def hit_rates(trace: Trace) -> dict[float, float]:
    """Share of input tokens found, by cache capacity [tokens]; infinity for an unlimited cache."""
    tokens = trace.input.tolist()
    return {size * BLOCK: replayed_hit_rate(trace.blocks, tokens, BLOCK, size) for size in (*CAPACITIES, float("inf"))}


def lengths(tokens: npt.NDArray[np.int64]) -> tuple[float, dict[float, float]]:
    """Mean and quantiles of a column."""
    return float(tokens.mean()), length_quantiles(tokens, LEVELS)


def traces(shared: Path) -> dict[str, Trace]:
    """All traces by the name of the workload that rests on them."""
    azure = shared / "traces" / "azure-2023"
    return {
        "chat": read_azure(azure / "AzureLLMInferenceTrace_conv.csv"),
        "agents": read_mooncake(shared / "traces" / "mooncake" / "conversation_trace.jsonl"),
        "code": read_azure(azure / "AzureLLMInferenceTrace_code.csv"),
    }


def _lines(name: str, got: Figures) -> list[str]:
    dispersion = ", ".join(f"{window} s: {value:.2f}" for window, value in got.dispersion.items())
    grid = f"rounded to {got.grid:.3f} s" if got.grid else "not rounded"
    return [f"{name}: {got.requests} requests, {got.rate:.4f} req/s, times {grid}", f"  dispersion {dispersion}"]


def report(shared: Path) -> str:
    """All figures as text."""
    lines: list[str] = []
    for name, trace in traces(shared).items():
        lines += _lines(name, figures(trace.times, float(trace.times[-1])))
        for side, tokens in (("input", trace.input), ("output", trace.output)):
            mean, marks = lengths(tokens)
            table = ", ".join(f"{level:g}: {mark:.0f}" for level, mark in marks.items())
            lines.append(f"  {side} mean {mean:.2f}, quantiles {{{table}}}")
        if trace.blocks:
            lines.append(
                "  dispersion " + ", ".join(f"{n} steps: {gridded_dispersion(trace.times, n):.2f}" for n in STEPS)
            )
            lines += [f"  {share:.4f} of input found in {size:g} tokens" for size, share in hit_rates(trace).items()]
        if name == "code":
            lines += _lines(f"{COPIES} copies of code", superposed(trace))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(report(shared_folder()))
