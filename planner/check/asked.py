"""From the commands that people run to what ``predict`` is asked: a configuration, its settings, and its load."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from planner.check.single import Flags, Settings
from planner.errors import InputError, shorten
from planner.intake.commands import LOADERS, SERVERS, Command, read_command
from planner.spec.catalog import Catalog
from planner.spec.model import ModelCard

QUANTISED = {
    "fp8": "fp8",
    "modelopt": "fp8",
    "w8a8_fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "modelopt_fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "awq": "int4",
    "awq_marlin": "int4",
    "gptq": "int4",
    "gptq_marlin": "int4",
    "w8a8_int8": "int8",
}
"""Number format that a value of ``--quantization`` means."""
CACHES = {"auto": "bf16", "bfloat16": "bf16", "bf16": "bf16", "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"}
"""Format of the KV cache that a value of ``--kv-cache-dtype`` means."""
SUFFIXES = (
    (r"[-_](nv)?fp4\b.*$", "nvfp4"),
    (r"[-_]fp8\b.*$", "fp8"),
    (r"[-_](awq|gptq|w4a16|int4|quantized\.w4a16).*$", "int4"),
    (r"[-_](w8a8|int8|quantized\.w8a8).*$", "int8"),
)
"""How names of repositories end that hold a quantised checkpoint."""
SHORTEST = 0.01
"""Least share of the nominal length that is drawn, where a load generator draws from zero on."""
UNLIMITED = ("inf", "infinity")
PROMPTS = {"vllm": "1000", "script": "1000", "sglang": "1000"}
"""Requests that a load generator sends where nothing is said."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What ``predict`` is asked."""

    row: Mapping[str, object]
    """Columns of an observation."""
    settings: Settings
    flags: Flags


@dataclass(frozen=True, slots=True)
class Served:
    """What the command that serves says."""

    row: Mapping[str, object]
    """Columns of an observation: model, hardware, engine and configuration."""
    settings: Settings
    flags: Flags
    longest: float | None
    """Most tokens of a request, where it is limited."""


def served(serve: str, hardware: str, version: str | None, catalog: Catalog) -> Served:
    """Read the command that serves. Raises :class:`planner.errors.InputError` where it cannot be read."""
    server = read_command(serve, SERVERS, "--serve")
    said = server.values.get("model") or server.model
    if said is None:
        raise InputError.of("--serve names no model; put it right behind the command", value=shorten(serve))
    model, weights = _model(said, catalog)
    row, unknown = _configuration(server, model)
    if weights is not None:
        row.setdefault("weights_dtype", weights)
    limits = Settings(
        _whole(server, "token_budget", "--serve"),
        _whole(server, "max_batch", "--serve"),
        _share(server),
    )
    identity = {"model": model.name, "hardware": hardware, "engine": server.name, "engine_version": version}
    flags = Flags(used=server.used, unknown=(*server.unknown, *unknown))
    return Served(identity | row, limits, flags, _number(server, "context", "--serve"))


def asked(serve: str, bench: str, hardware: str, version: str | None, catalog: Catalog) -> Asked:
    """Read the command that serves and the command that loads.

    ``version`` is that of the engine, where it is said. Raises :class:`planner.errors.InputError` where one of them
    cannot be read, or they contradict each other.
    """
    server, loader = served(serve, hardware, version, catalog), read_command(bench, LOADERS, "--bench")
    load = _load(loader)
    total = float(str(load["input_tokens"])) + float(str(load["output_tokens"]))
    if server.longest is not None and total > server.longest:
        problem = f"--bench asks for {total:g} tokens a request, --serve allows {server.longest:g}; allow as many"
        raise InputError.of(problem, value=f"{server.longest:g}")
    flags = Flags(used=(*server.flags.used, *loader.used), unknown=(*server.flags.unknown, *loader.unknown))
    return Asked({**server.row, **load}, server.settings, flags)


def _model(said: str, catalog: Catalog) -> tuple[ModelCard, str | None]:
    """Find the card of a repository, and the format that its name tells; other people's quantisations count too."""
    base, weights = said.rstrip("/").rsplit("/", 1)[-1], None
    for pattern, form in SUFFIXES:
        cut = re.sub(pattern, "", base, flags=re.IGNORECASE)
        if cut != base:
            base, weights = cut, form
            break
    try:
        return catalog.model(said), weights
    except InputError as error:
        for name in catalog.names("model"):
            card = catalog.model(name)
            known = {name, *(repository.rsplit("/", 1)[-1] for repository in card.repositories)}
            if base.lower() in {one.lower() for one in known}:
                return card, weights
        raise error from None


def _configuration(server: Command, model: ModelCard) -> tuple[dict[str, object], list[str]]:
    """Columns of the configuration, and flags whose values are not known."""
    tp, pp, dp = (_whole(server, name, "--serve") or 1 for name in ("tp", "pp", "dp"))
    row: dict[str, object] = {"tp": tp, "pp": pp, "ep": _whole(server, "ep", "--serve") or 1}
    unknown: list[str] = []
    if server.name == "vllm":
        # Ranks of a model with experts share them, so they are ranks of one replica.
        attention = dp > 1 and model.sparse
        row["ep"] = tp * dp if "expert" in server.switches else 1
        row["accelerators"] = tp * pp * dp
    else:
        attention = "attention" in server.switches and dp > 1
        row["accelerators"] = tp * pp * (1 if attention else dp)
        if attention:
            row["tp"] = max(tp // dp, 1)
    if dp > 1:
        row |= {"dp": dp, "dp_kind": "attention" if attention else "replicas"}
    for name, column, known in (("weights", "weights_dtype", QUANTISED), ("kv", "kv_dtype", CACHES)):
        value = server.values.get(name)
        if value is not None and value.lower() in known:
            row[column] = known[value.lower()]
        elif value is not None:
            unknown.append(f"{'--quantization' if name == 'weights' else '--kv-cache-dtype'} {value}")
    return row, unknown


def _load(loader: Command) -> dict[str, object]:
    """Columns of the load."""
    lengths = {name: _number(loader, name, "--bench") for name in ("input", "output")}
    missing = [name for name, value in lengths.items() if value is None]
    if missing:
        problem = f"--bench does not say how many tokens {' and '.join(missing)} has, for example 1024 and 256"
        raise InputError.of(problem, value=" ".join(loader.used) or loader.name)
    row: dict[str, object] = {"input_tokens": lengths["input"], "output_tokens": lengths["output"]}
    if loader.name == "batch":
        return row | {"kind": "decode", "concurrency": _whole(loader, "batch", "--bench") or 1}
    if jitter := _jitter(loader):
        row["length_jitter"] = jitter
    prompts = loader.values.get("prompts") or PROMPTS.get(loader.name)
    row["num_prompts"] = prompts
    rate = loader.values.get("rate", "inf")
    if rate.lower() not in UNLIMITED:
        return row | {"kind": "open_loop", "request_rate": _number(loader, "rate", "--bench")}
    # Without a limit all requests come at once and none follows.
    most = _whole(loader, "concurrency", "--bench") or _whole(loader, "prompts", "--bench") or prompts
    return row | {"kind": "fixed_concurrency", "concurrency": most}


def _jitter(loader: Command) -> str | None:
    """Shares of the nominal lengths between which they are drawn.

    ``vllm bench serve`` takes the ratio as the half width around the length; its script before that, and SGLang, as the
    shortest share of it.
    """
    ratio = _number(loader, "jitter", "--bench")
    if ratio is None:
        ratio = 0.0 if loader.name in {"vllm", "sglang"} else None
    if ratio is None:
        return None
    if not 0.0 <= ratio <= 1.0:
        problem = f"--bench: a range ratio of {ratio:g} should be between 0 and 1"
        raise InputError.of(problem, value=f"{ratio:g}")
    low, high = (1.0 - ratio, 1.0 + ratio) if loader.name == "vllm" else (ratio, 1.0)
    return None if low == high else f"uniform {max(low, SHORTEST):g}-{high:g} of nominal"


def _number(command: Command, name: str, option: str) -> float | None:
    text = command.values.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1e12:  # noqa: PLR2004 - neither a time nor a count is that large
        problem = f"{option}: {name} {shorten(text)} should be a number, for example 64"
        raise InputError.of(problem, value=shorten(text))
    return value


def _whole(command: Command, name: str, option: str) -> int | None:
    value = _number(command, name, option)
    if value is not None and (value < 1 or value != int(value)):
        problem = f"{option}: {name} {value:g} should be a whole number from 1 on"
        raise InputError.of(problem, value=f"{value:g}")
    return None if value is None else int(value)


def _share(server: Command) -> float | None:
    value = _number(server, "memory", "--serve")
    if value is not None and not 0.0 < value <= 1.0:
        problem = f"--serve: a share of the memory of {value:g} should be above 0 and at most 1, for example 0.9"
        raise InputError.of(problem, value=f"{value:g}")
    return value
