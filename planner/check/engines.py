"""What the authors of measurements call an engine: its family, and its version where the name tells it."""

import re
from typing import NamedTuple

FAMILIES = (
    (r"sglang|\bsgl\b", "sglang"),
    (r"vllm", "vllm"),
    # AMD's ATOM and MangoBoost's LLMBoost schedule as vLLM does; LLMBoost says so in its name.
    (r"\batom\b|llmboost", "vllm"),
    # MLPerf names the library below TensorRT-LLM; NVIDIA's entries name CUDA alone where they name nothing else.
    (r"tensorrt|\btrt(-?llm)?\b|^cuda [\d.]+$", "tensorrt-llm"),
)
"""Patterns of engine strings, the first that is found counts, and the engine card that they mean."""
_VERSION = re.compile(r"(?<![\d.])v?(\d+\.\d+(?:\.\d+)*)")
_UNRELEASED = re.compile(r"^(nightly|main|dev)", re.IGNORECASE)


class Named(NamedTuple):
    """An engine that a measurement names."""

    family: str
    """Name of an engine card."""
    version: str | None
    """None where it is not said, or not released yet."""
    dated: bool
    """Whether what is said tells of its age, if not of its version: a nightly build, the release of another library."""


def named(engine: str, version: str | None) -> Named | None:
    """Read an engine string and a version; None where the engine is not known.

    >>> named("TensorRT-LLM (static batch)", "0.9"), named("vLLM (ROCm)", "nightly-5b8c30d6")
    (Named(family='tensorrt-llm', version='0.9', dated=True), Named(family='vllm', version=None, dated=True))
    >>> named("sglang", "lmsysorg/sglang:v0.5.12-cu130"), named("llama.cpp", "1.0")
    (Named(family='sglang', version='0.5.12', dated=True), None)
    >>> named("vLLM", None)
    Named(family='vllm', version=None, dated=False)
    """
    family = next((name for pattern, name in FAMILIES if re.search(pattern, engine.lower())), None)
    if family is None:
        return None
    if version and _UNRELEASED.match(version):
        return Named(family, None, dated=True)
    # In an image the tag counts, not the name of the registry; in an engine string only a vLLM version is its own.
    text = version.rsplit(":", 1)[-1] if version else _own(engine)
    found = _VERSION.search(text)
    dated = bool(version) or any(letter.isdigit() for letter in engine)
    return Named(family, found.group(1) if found else None, dated)


def _own(engine: str) -> str:
    found = re.search(r"vllm[ -](\d+\.\d+(?:\.\d+)*)", engine.lower())
    return found.group(1) if found else ""
