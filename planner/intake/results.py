"""Result files of load generators as loads and what was measured under them, in SI units.

Sources: vLLM ``benchmarks/benchmark_serving.py`` and ``vllm bench serve --save-result`` (0.8 to 0.19), one JSON object,
or one a line with ``--append-result``; SGLang ``bench_serving --output-file`` (0.4 to 0.5), JSON lines; AIPerf
``profile_export_aiperf.json`` (0.3). What is in milliseconds there becomes seconds here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from planner.errors import Fault, InputError, shorten
from planner.intake.files import json_lines, read_text

KNOWN = "vllm bench serve --save-result, sglang bench_serving --output-file, AIPerf profile_export_aiperf.json"
FIGURES = re.compile(r"^(mean|median|p50|p90|p95|p99)_(ttft|tpot|e2el|e2e_latency)(_ms)?$")
"""Keys of latencies; those without a unit are in seconds, as InferenceX copies them. Gaps between
stream chunks (ITL) are left alone: a chunk may hold several tokens."""
AIPERF = {"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2e_latency"}
"""AIPerf's inter-token latency is (latency - TTFT) / (tokens - 1) of a request, which others call TPOT."""
SECONDS = {"ms": 1e-3, "sec": 1.0, "s": 1.0, "seconds": 1.0, "us": 1e-6, "ns": 1e-9}
LARGEST = 512 * 1024 * 1024
"""Bytes of the largest file that is read; one with details has a text and the gaps of every request."""


def _unlimited(value: object) -> object:
    """Take a rate that is not there as unlimited, as the load generators do."""
    return float("inf") if value is None else value


class BenchResult(BaseModel):
    """What vLLM and SGLang write of a run, as far as it is used. Their other keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    input_lens: tuple[int, ...] = ()
    output_lens: tuple[int, ...] = ()
    """Tokens of the requests, one by one."""
    request_rate: Annotated[float | str, BeforeValidator(_unlimited)] = Field(
        default=float("inf"), union_mode="left_to_right"
    )
    burstiness: float = 1.0
    max_concurrency: Annotated[int, Field(ge=1)] | None = None
    duration: Annotated[float, Field(gt=0)]
    completed: Annotated[int, Field(ge=0)]
    failed: Annotated[int, Field(ge=0)] = 0
    total_input_tokens: Annotated[float, Field(ge=0)]
    total_output_tokens: Annotated[float, Field(ge=0)]
    dataset_name: str | None = None
    random_input_len: float | None = None
    random_output_len: float | None = None
    random_range_ratio: float | None = None
    accept_length: float | None = None
    """Tokens that a step of speculative decoding accepts."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a load generator, whatever it is called there."""

    line: int | None
    """Line of the file where it begins; None where the file holds one run."""
    run: BenchResult
    figures: Mapping[str, float]
    """Seconds, or tokens per second, by metric."""


def is_result(path: Path) -> bool:
    """Whether a file holds results and not a table: whether it begins as JSON.

    Raises :class:`planner.errors.InputError` where it cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as stream:
            return stream.read(512).lstrip()[:1] in {"{", "["}
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise InputError.of(msg, file=str(path)) from error


def read_results(path: Path) -> tuple[Result, ...]:
    """Read a result file.

    Raises
    ------
    InputError
        With the faults of the file: file, line, field, value, and what would be right.

    """
    faults: list[Fault] = []
    out = []
    for line, value in _documents(path):
        if not isinstance(value, dict):
            faults.append(Fault(str(path), line, "", "", f"holds no result of a run; read are {KNOWN}"))
            continue
        known = _aiperf(value) if "input_config" in value else value
        try:
            run = BenchResult.model_validate(known)
        except ValidationError as error:
            faults += _faults(path, line, error)
            continue
        figures = {name: float(value) for name, value in _figures(known)}
        out.append(Result(line, run, figures))
    if not faults and not out:
        faults.append(Fault(str(path), None, "", "", f"holds no results; read are {KNOWN}"))
    if faults:
        raise InputError(faults[:20])
    return tuple(out)


def _documents(path: Path) -> Iterator[tuple[int | None, object]]:
    """JSON values of a file: one for the whole of it, or one for each line; ``Infinity`` counts as a number."""
    text = read_text(path, LARGEST, "result file (JSON)")
    try:
        whole = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        pass
    else:
        yield from ((None, one) for one in (whole if isinstance(whole, list) else [whole]))
        return
    yield from json_lines(path, text)


def _figures(values: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """Latencies and throughput of a run. Nought means that it was not measured, as with answers that do not stream."""
    for key, value in values.items():
        found = FIGURES.match(key)
        if found and isinstance(value, int | float) and 0.0 < value < float("inf"):
            level, name, unit = found.groups()
            level, name = level.replace("median", "p50"), name.replace("e2el", "e2e_latency")
            seconds = value / 1e3 if unit else float(value)
            if name != "e2e_latency":
                yield f"{name}_{level}", seconds
            elif level == "mean":
                yield name, seconds
    tokens = values.get("output_throughput")
    if isinstance(tokens, int | float) and 0.0 < tokens < float("inf"):
        yield "output_tokens_per_s", float(tokens)


def _aiperf(value: Mapping[str, object]) -> dict[str, object]:
    """Spell what AIPerf writes as vLLM does."""

    def inner(of: object, *keys: str) -> object:
        for key in keys:
            of = of.get(key) if isinstance(of, dict) else None
        return of

    def average(name: str) -> object:
        return inner(value, name, "avg")

    given = inner(value, "input_config", "loadgen")
    out = {
        "request_rate": inner(given, "request_rate"),
        "burstiness": 1.0 if inner(given, "arrival_pattern") in {None, "poisson"} else 0.0,
        "max_concurrency": inner(given, "concurrency"),
        "duration": average("benchmark_duration"),
        "completed": average("request_count"),
        "failed": average("error_request_count") or 0,
        "total_input_tokens": average("total_isl"),
        "total_output_tokens": average("total_osl"),
        "output_throughput": average("output_token_throughput"),
    }
    for name, short in AIPERF.items():
        scale = SECONDS.get(str(inner(value, name, "unit")))
        for level in ("avg", "p50", "p90", "p95", "p99"):
            figure = inner(value, name, level)
            if scale and isinstance(figure, int | float):
                out[f"{'mean' if level == 'avg' else level}_{short}_ms"] = figure * scale * 1e3
    return {key: one for key, one in out.items() if one is not None}


def _faults(path: Path, line: int | None, error: ValidationError) -> Iterator[Fault]:
    for detail in error.errors(include_url=False):
        field = ".".join(str(one) for one in detail["loc"])
        if detail["type"] == "missing":
            problem = f"{field} is missing; read are {KNOWN}"
            yield Fault(str(path), line, field, "", problem)
        else:
            shown = shorten(detail["input"])
            yield Fault(
                str(path), line, field, shown, f"{shown} {detail['msg'].replace('Input should be', 'should be')}"
            )
