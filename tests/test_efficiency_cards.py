import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from planner.spec.card import read_document
from planner.spec.catalog import kernels as driver
from planner.spec.efficiency import Collective, EfficiencyCard, Fit, FormatBlock
from planner.spec.engine import EngineCard
from planner.spec.hardware import ComputeFormat, HardwareCard

ROOT = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent)).resolve()
PATHS = sorted((ROOT / "hardware" / "efficiency").glob("*.yaml"))
UNITS: dict[str, ComputeFormat] = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "int8": "int8",
    "int4": "bf16",
    "mxfp4": "fp4",
    "nvfp4": "fp4",
}
KERNELS = ("gemm", "prefill_attention", "decode_attention", "experts")

every_card = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def kernels(block: FormatBlock) -> dict[str, Fit]:
    return {name: fit for name in KERNELS if (fit := getattr(block, name)) is not None}


def fits(card: EfficiencyCard) -> list[Fit]:
    parts = [fit for block in card.formats.values() for fit in kernels(block).values()]
    return [*parts, *(getattr(card.collectives, kind) for kind in type(card.collectives).model_fields)]


def all_reduce_seconds(collective: Collective, size: int, sent: float) -> float:
    ring = collective.ring[size]
    times = [ring.latency + 2 * (size - 1) / size * sent / ring.bandwidth]
    if one_shot := collective.one_shot.get(size):
        times.append(one_shot.latency + (size - 1) * sent / one_shot.bandwidth)
    return min(times)


def test_every_hardware_card_has_an_efficiency_card_and_the_reverse() -> None:
    hardware = {path.stem for path in (ROOT / "hardware").glob("*.yaml")}
    assert {path.stem.split("--")[0] for path in PATHS} == hardware


@every_card
def test_a_card_names_an_accelerator_and_an_engine_that_exist(path: Path) -> None:
    card = read_document(path, EfficiencyCard)
    assert path.stem == f"{card.hardware}--{card.engine}"
    assert read_document(ROOT / "hardware" / f"{card.hardware}.yaml", HardwareCard).name == card.hardware
    engines = [read_document(path, EngineCard) for path in (ROOT / "hardware" / "engines").glob("*.yaml")]
    assert card.engine in {driver(engine, version) for engine in engines for version in engine.versions}


@every_card
def test_compute_shares_refer_to_the_fastest_matrix_units_of_the_format(path: Path) -> None:
    card = read_document(path, EfficiencyCard)
    rates = read_document(ROOT / "hardware" / f"{card.hardware}.yaml", HardwareCard).peak.rates
    for name, block in card.formats.items():
        native = rates.get(UNITS[name], rates["bf16"])
        assert block.peak is not None
        assert rates[block.peak] == native, name


@every_card
def test_efficiencies_are_physical(path: Path) -> None:
    card = read_document(path, EfficiencyCard)
    assert 0.1 <= card.scale_out.bandwidth <= 1
    for name, block in card.formats.items():
        for kernel, fit in kernels(block).items():
            where = f"{name}.{kernel}"
            assert getattr(fit, "compute", 0.5) <= 0.95, where
            assert getattr(fit, "compute", 0.5) >= 0.03, where
            assert 0.15 <= getattr(fit, "memory", 0.5) <= 1.3, where
            assert 0.5e-6 <= getattr(fit, "kernel", 1e-6) <= 100e-6, where


@every_card
def test_dense_products_and_experts_have_numbers_in_every_format(path: Path) -> None:
    card = read_document(path, EfficiencyCard)
    assert set(card.formats) == {"bf16", "fp8", "fp8_block", "int8", "int4", "mxfp4", "nvfp4"}
    assert all({"gemm", "experts"} <= kernels(block).keys() for block in card.formats.values())
    assert kernels(card.formats["bf16"]).keys() == set(KERNELS)


@every_card
def test_what_was_carried_over_is_no_surer_than_what_was_measured(path: Path) -> None:
    card = read_document(path, EfficiencyCard)
    for fit in fits(card):
        assert fit.band >= (0.3 if fit.basis == "assumed" else 0.08)
        if fit.basis == "measured":
            text = card.sources[fit.source]
            assert f"on {card.hardware}" in text
            assert f"of {card.engine} " in text or "of nccl " in text


@every_card
def test_a_longer_message_never_takes_less_time(path: Path) -> None:
    collectives = read_document(path, EfficiencyCard).collectives
    for size in (2, 4, 8):
        times = [all_reduce_seconds(collectives.all_reduce, size, 2.0**power) for power in range(8, 30)]
        assert all(shorter <= longer for shorter, longer in pairwise(times))
        assert all(size in getattr(collectives, kind).ring for kind in type(collectives).model_fields)


@every_card
def test_a_card_can_be_read_by_people(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < 150


@pytest.mark.shared
def test_cards_are_what_the_timings_say(shared: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.seed_efficiency", "--check"]
    environment = os.environ | {"PLANNER_SHARED": str(shared)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_published_floor_of_an_all_reduce_is_met_within_the_band() -> None:
    """B200, vLLM 0.24.0 in CUDA graphs, eight accelerators: 7.4 us for the smallest message.

    In a running engine ranks also wait for each other, which the fitted factor on latencies holds.
    """
    factors = yaml.safe_load((ROOT / "benchmarks" / "efficiency_factors.yaml").read_text("utf-8"))["b200-sxm--vllm"]
    card = read_document(ROOT / "hardware" / "efficiency" / "b200-sxm--vllm.yaml", EfficiencyCard)
    collective = card.collectives.all_reduce
    assert all_reduce_seconds(collective, 8, 256) == pytest.approx(7.4e-6 * factors["latency"], rel=collective.band)
