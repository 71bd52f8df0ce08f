"""Commands that people run, read as what ``predict`` needs: how an engine serves, and how it was loaded.

Flags are of three kinds: those that are used, those that change nothing which is predicted, and all others, which are
named. Sources: vLLM documentation, ``vllm serve`` and ``vllm bench serve`` (0.19); SGLang documentation, Server
Arguments and Bench Serving (0.5); TensorRT-LLM documentation, trtllm-serve (1.0); AIPerf documentation, ``profile``.
"""

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from planner.errors import InputError, shorten

_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_HARMLESS_VARIABLES = re.compile(
    r"^(CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|HF_\w+|HUGGING\w+|VLLM_LOGGING\w*|\w*CACHE\w*)="
)
_PYTHON = re.compile(r"(^|/)python[\d.]*$")


@dataclass(frozen=True, slots=True)
class Program:
    """A command line that is known."""

    words: tuple[str, ...]
    """How it begins, without paths; ``python -m`` and ``python`` are left out."""
    name: str
    """Engine card, or way to load one."""
    used: Mapping[str, tuple[str, ...]]
    """Flags with a value, by what they mean."""
    switches: Mapping[str, tuple[str, ...]]
    """Flags without a value, by what they mean."""
    harmless: tuple[str, ...] = ()
    """Flags with a value that change nothing which is predicted."""
    silent: tuple[str, ...] = ()
    """Flags without a value that change nothing which is predicted."""


_WEB = ("--host", "--port", "--api-key", "--served-model-name", "--download-dir", "--seed", "--chat-template")
_PARSERS = ("--tool-call-parser", "--reasoning-parser", "--tokenizer", "--revision", "--log-level", "--tokenizer-path")
_VLLM = {
    "model": ("--model",),
    "tp": ("--tensor-parallel-size", "-tp"),
    "pp": ("--pipeline-parallel-size", "-pp"),
    "dp": ("--data-parallel-size", "-dp"),
    "max_batch": ("--max-num-seqs",),
    "token_budget": ("--max-num-batched-tokens",),
    "memory": ("--gpu-memory-utilization",),
    "kv": ("--kv-cache-dtype",),
    "weights": ("--quantization", "-q"),
    "dtype": ("--dtype",),
    "context": ("--max-model-len",),
}
_SGLANG = {
    "model": ("--model-path", "--model"),
    "tp": ("--tp-size", "--tensor-parallel-size", "--tp"),
    "pp": ("--pp-size", "--pipeline-parallel-size", "--pp"),
    "dp": ("--dp-size", "--data-parallel-size", "--dp"),
    "ep": ("--ep-size", "--expert-parallel-size", "--ep"),
    "max_batch": ("--max-running-requests",),
    "token_budget": ("--chunked-prefill-size",),
    "memory": ("--mem-fraction-static",),
    "kv": ("--kv-cache-dtype",),
    "weights": ("--quantization",),
    "dtype": ("--dtype",),
    "context": ("--context-length",),
}
_TRTLLM = {
    "model": ("--model",),
    "tp": ("--tp-size",),
    "pp": ("--pp-size",),
    "ep": ("--ep-size",),
    "max_batch": ("--max-batch-size",),
    "token_budget": ("--max-num-tokens",),
    "memory": ("--kv-cache-free-gpu-memory-fraction",),
    "context": ("--max-seq-len",),
}
SERVERS = tuple(
    Program(words, name, used, switches, (*_WEB, *_PARSERS, *more), silent)
    for name, used, switches, more, silent, starts in (
        (
            "vllm",
            _VLLM,
            {"expert": ("--enable-expert-parallel",)},
            ("--uvicorn-log-level", "--config-format", "--load-format"),
            ("--trust-remote-code", "--disable-log-requests", "--disable-log-stats", "--enable-auto-tool-choice"),
            (("vllm", "serve"), ("vllm.entrypoints.openai.api_server",)),
        ),
        (
            "sglang",
            _SGLANG,
            {"attention": ("--enable-dp-attention",)},
            ("--log-level-http", "--decode-log-interval", "--load-format"),
            ("--trust-remote-code", "--enable-metrics", "--log-requests"),
            (("sglang.launch_server",), ("sglang", "serve")),
        ),
        (
            "tensorrt-llm",
            _TRTLLM,
            {},
            (),
            ("--trust-remote-code",),
            (("trtllm-serve", "serve"), ("trtllm-serve",)),
        ),
    )
    for words in starts
)
_LOADER: dict[str, tuple[str, ...]] = {
    "concurrency": ("--max-concurrency",),
    "rate": ("--request-rate",),
    "prompts": ("--num-prompts",),
    "jitter": ("--random-range-ratio",),
    "dataset": ("--dataset-name",),
}
_LOADER_HARMLESS = (
    *("--backend", "--endpoint", "--base-url", "--host", "--port", "--model", "--tokenizer", "--seed", "--metadata"),
    *("--percentile-metrics", "--metric-percentiles", "--result-dir", "--result-filename", "--output-file"),
    *("--served-model-name", "--endpoint-type", "--num-warmups", "--warmup-requests", "--random-prefix-len"),
)
_LOADER_SILENT = ("--save-result", "--save-detailed", "--ignore-eos", "--disable-tqdm", "--trust-remote-code")
_VLLM_LENGTHS: dict[str, tuple[str, ...]] = {
    "input": ("--random-input-len", "--input-len"),
    "output": ("--random-output-len", "--output-len"),
}
_BATCH = {"input": ("--input-len",), "output": ("--output-len",), "batch": ("--batch-size", "--batch")}
LOADERS = (
    Program(("vllm", "bench", "serve"), "vllm", _VLLM_LENGTHS | _LOADER, {}, _LOADER_HARMLESS, _LOADER_SILENT),
    Program(("benchmark_serving.py",), "script", _VLLM_LENGTHS | _LOADER, {}, _LOADER_HARMLESS, _LOADER_SILENT),
    Program(
        ("sglang.bench_serving",),
        "sglang",
        {"input": ("--random-input-len", "--random-input"), "output": ("--random-output-len", "--random-output")}
        | _LOADER,
        {},
        _LOADER_HARMLESS,
        _LOADER_SILENT,
    ),
    Program(("vllm", "bench", "latency"), "batch", _BATCH, {}, ("--model", "--num-iters", "--num-iters-warmup")),
    Program(("sglang.bench_one_batch",), "batch", _BATCH, {}, ("--model-path", "--model", "--run-name")),
    *(
        Program(
            (tool, "profile"),
            "aiperf",
            {
                "input": ("--synthetic-input-tokens-mean", "--isl"),
                "output": ("--output-tokens-mean", "--osl"),
                "concurrency": ("--concurrency",),
                "rate": ("--request-rate",),
                "prompts": ("--request-count", "--num-requests"),
            },
            {"streaming": ("--streaming",)},
            ("-m", "--model", "--endpoint-type", "--endpoint", "-u", "--url", "--tokenizer", "--random-seed"),
        )
        for tool in ("aiperf", "genai-perf")
    ),
)


class _Quiet(argparse.ArgumentParser):
    """A parser that raises what it has to say."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the process."""
        raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that was read."""

    name: str
    values: Mapping[str, str]
    """Text of each setting that is given."""
    switches: frozenset[str]
    model: str | None
    """What stands without a flag."""
    used: tuple[str, ...]
    unknown: tuple[str, ...]
    """Flags, and variables of the environment, that may change the result and are not known."""


def read_command(text: str, programs: Sequence[Program], option: str) -> Command:
    """Read a command line; flags may spell a hyphen as an underscore, and be in any order.

    Raises :class:`planner.errors.InputError` where it does not begin as any of ``programs``, or a flag lacks its value.

    >>> found = read_command("vllm serve Qwen/Qwen3-8B -tp 2 --max_num_seqs=64 --swap-space 4", SERVERS, "--serve")
    >>> found.model, dict(found.values), found.unknown
    ('Qwen/Qwen3-8B', {'tp': '2', 'max_batch': '64'}, ('--swap-space 4',))
    """
    try:
        tokens = shlex.split(text, comments=False)
    except ValueError as error:
        problem = f"{option} is no command line: {str(error).lower()}"
        raise InputError.of(problem, value=shorten(text)) from error
    variables = []
    while tokens and _ASSIGNMENT.match(tokens[0]):
        variables.append(tokens.pop(0))
    program, rest = _program(tokens, programs, option, text)
    parser = _parser(program)
    try:
        found, extra = parser.parse_known_args([_hyphens(token) for token in rest])
    except ValueError as error:
        problem = f"{option}: {error}"
        raise InputError.of(problem, value=shorten(text)) from error
    given = vars(found)
    bare, unknown = _leftover(extra)
    names = [name for name in (*program.used, *program.switches) if given[name] not in (None, False)]
    flags = {**program.used, **program.switches}
    named = [f"{variable}" for variable in variables if not _HARMLESS_VARIABLES.match(variable)]
    return Command(
        name=program.name,
        values={name: str(given[name]) for name in names if name in program.used},
        switches=frozenset(name for name in names if name in program.switches),
        model=bare,
        used=tuple(f"{flags[name][0]} {given[name]}" if name in program.used else flags[name][0] for name in names),
        unknown=(*named, *unknown),
    )


def _program(tokens: list[str], programs: Sequence[Program], option: str, text: str) -> tuple[Program, list[str]]:
    """Find which program a command line runs, and what follows its name."""
    words = list(tokens)
    if words and _PYTHON.search(words[0]):
        words.pop(0)
        if words[:1] == ["-m"]:
            words.pop(0)
    bare = [word.rsplit("/", 1)[-1] for word in words[:3]]
    for program in programs:
        if tuple(bare[: len(program.words)]) == program.words:
            return program, words[len(program.words) :]
    known = ", ".join(f"'{' '.join(program.words)}'" for program in programs)
    problem = f"{option} begins as no command that is known: {known}"
    raise InputError.of(problem, value=shorten(text))


def _parser(program: Program) -> argparse.ArgumentParser:
    parser = _Quiet(add_help=False, allow_abbrev=False)
    for name, flags in program.used.items():
        parser.add_argument(*flags, dest=name)
    for name, flags in program.switches.items():
        parser.add_argument(*flags, dest=name, action="store_true")
    taken = {flag for flags in program.used.values() for flag in flags}
    for flag in dict.fromkeys(program.harmless):
        if flag not in taken:
            parser.add_argument(flag, dest=f"harmless {flag}")
    for flag in program.silent:
        parser.add_argument(flag, dest=f"silent {flag}", action="store_true")
    return parser


def _hyphens(token: str) -> str:
    """Spell the name of a flag with hyphens; its value is left alone."""
    if not token.startswith("--"):
        return token
    name, equals, value = token.partition("=")
    return name.replace("_", "-") + equals + value


def _leftover(extra: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Divide what no flag took into the word before the first unknown flag, and unknown flags with their values."""
    bare, unknown = None, list[str]()
    for word in extra:
        if word.startswith("-"):
            unknown.append(word)
        elif unknown:
            unknown[-1] += f" {word}"
        elif bare is None:
            bare = word
        else:
            unknown.append(word)
    return bare, tuple(unknown)
