"""Measured replays of vLLM 0.19 (LLMServingSim, commit 5daddb2): the simulator stays close to a running engine."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from planner.spec.catalog import Catalog

ROOT = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent.parent)).resolve()
FOLDERS = ("RTXPRO6000_Llama-3.1-8B", "RTXPRO6000_Qwen3-30B-A3B-Instruct-2507")


@pytest.fixture(scope="module")
def replays() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_replays", ROOT / "benchmarks" / "replays.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.shared
@pytest.mark.parametrize("name", FOLDERS)
def test_calibrated_on_50_requests_the_rest_follows(replays: ModuleType, shared: Path, name: str) -> None:
    """Mean TPOT within 10 %, mean TTFT within 20 %, who runs and who waits within 15 % of their peak at any time."""
    result = replays.compare(shared / "traces" / "vllm-replays" / name, Catalog())
    assert abs(result.tpot) < 0.10
    assert abs(result.ttft) < 0.20
    assert result.running < 0.15
    assert result.waiting < 0.15
    assert 0.8 < result.factor < 1.25, "step times as shipped are not far off"
