"""Hold the simulator against measured replays of vLLM: the same requests, timed on a running engine.

Run ``python -m benchmarks.replays [FOLDER...]``; absent: those of ``$PLANNER_SHARED/traces/vllm-replays`` (default:
``shared`` beside the repository). A folder holds ``meta.json`` (how the engine was run), ``requests.jsonl`` and
``timeseries.csv``, as LLMServingSim's bench writes them. Step times are calibrated by one factor, from the first 50
requests alone.
"""

import csv
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

from planner.check.expression import express, subject
from planner.check.replays import Replayed, replayed
from planner.check.single import Settings, replicas
from planner.intake.traces import read_trace
from planner.replica.candidates import Replicas
from planner.spec.catalog import Catalog
from planner.spec.observation import Observation

ROOT = Path(__file__).resolve().parent.parent
FIRST = 50
"""Requests that the factor comes from."""
HARDWARE = {"RTXPRO6000": "rtx-pro-6000-server", "H100": "h100-sxm", "A100": "a100-80gb-sxm", "H200": "h200-sxm"}
"""Names of accelerators in names of folders, and cards."""
FORMATS = {"bfloat16": "bf16", "auto": "bf16", "float16": "bf16", "fp8": "fp8"}


@dataclass(frozen=True, slots=True)
class Result:
    """Measured against simulated: relative errors of means, and largest errors of counts over their peak."""

    name: str
    factor: float
    tpot: float
    ttft: float
    running: float
    waiting: float


def configuration(meta: dict[str, dict[str, object]], hardware: str, catalog: Catalog) -> Replicas:
    """Return the replica that an engine was run as."""
    run = meta["engine_kwargs"]
    dp, tp = int(str(run["data_parallel_size"])), int(str(run["tensor_parallel_size"]))
    model = str(run["model"])
    row = Observation.model_validate(
        {
            "engine": "vllm",
            "engine_version": meta["vllm_version"],
            "model": model if _known(model, catalog) else model.rsplit("/", 1)[-1].lower(),
            "weights_dtype": FORMATS[str(run["dtype"])],
            "kv_dtype": FORMATS[str(run["kv_cache_dtype"])],
            "hardware": hardware,
            "tp": tp,
            "dp": dp,
            "dp_kind": "attention" if dp > 1 else None,
            "ep": tp * dp if run["enable_expert_parallel"] else 1,
            "accelerators": tp * dp,
            "input_tokens": 1000,
            "output_tokens": 500,
            "concurrency": 8,
            "kind": "fixed_concurrency",
            "metric": "tpot_mean",
            "value": 1.0,
            "unit": "s",
        }
    )
    limits = Settings(int(str(run["max_num_batched_tokens"])), int(str(run["max_num_seqs"])))
    one = limits.on(express(row, catalog))
    return replicas(subject(one.configuration, one.load), one.configuration.layout)


def _known(model: str, catalog: Catalog) -> bool:
    return any(model in (name, *catalog.model(name).repositories) for name in catalog.names("model"))


def compare(folder: Path, catalog: Catalog) -> Result:
    """Replay one folder."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    hardware = next(card for name, card in HARDWARE.items() if folder.name.upper().startswith(name))
    of = configuration(meta, hardware, catalog)
    trace = read_trace(folder / "requests.jsonl")
    with (folder / "timeseries.csv").open(encoding="utf-8") as stream:
        series = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(stream)]
    done: Replayed = replayed(of, trace, [row["t"] for row in series], FIRST)
    if trace.first is None or trace.last is None:
        msg = f"{folder}: the requests were not timed"
        raise ValueError(msg)
    tpot = (trace.last - trace.first) / (trace.output - 1)
    off = []
    for name, seen in (("running", done.running), ("waiting", done.waiting)):
        measured = np.array([row[name] for row in series])
        off.append(float(np.abs(measured - seen).max() / max(measured.max(), 1.0)))
    return Result(
        folder.name,
        done.factor,
        float(np.nanmean(done.tpot) / np.mean(tpot) - 1.0),
        float(np.mean(done.ttft) / np.mean(trace.first) - 1.0),
        *off,
    )


def folders() -> list[Path]:
    """Return the folders of the shared material."""
    shared = Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared"))
    return sorted(path for path in (shared / "traces" / "vllm-replays").iterdir() if path.is_dir())


def main(arguments: Sequence[str]) -> None:
    """Print a line for each replay."""
    catalog = Catalog()
    results = [compare(folder, catalog) for folder in [Path(one) for one in arguments] or folders()]
    rows = [
        (
            one.name,
            f"{one.factor:.3f}",
            *(f"{100.0 * value:+.1f} %" for value in (one.tpot, one.ttft)),
            *(f"{100.0 * value:.1f} %" for value in (one.running, one.waiting)),
        )
        for one in results
    ]
    print(tabulate(rows, ("Replay", "Factor", "Mean TPOT", "Mean TTFT", "Running", "Waiting"), disable_numparse=True))


if __name__ == "__main__":
    main(sys.argv[1:])
