"""Engine cards: versions in order, defaults in sane ranges, and tiers that give what the engines' code gives."""

import csv
import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spec.card import ASSUMED, read_document
from planner.spec.engine import EngineCard, EngineVersion, tailor
from planner.spec.hardware import HardwareCard

ROOT = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent)).resolve()
CARDS = {path.stem: read_document(path, EngineCard) for path in sorted((ROOT / "hardware" / "engines").glob("*.yaml"))}
CHIPS = {path.stem: read_document(path, HardwareCard) for path in sorted((ROOT / "hardware").glob("*.yaml"))}
VERSIONS = {f"{name}-{version.since}": version for name, card in CARDS.items() for version in card.versions}
GIB = 2.0**30
SETTINGS = {
    *("tp", "pp", "dp", "ep", "max_batch", "token_budget", "weights_dtype", "kv_dtype", "max_context"),
    *("memory_fraction", "prefix_caching", "mixed_steps"),
}
"""Settings of a plan that a deployment has to spell."""

EACH = pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
EACH_CARD = pytest.mark.parametrize("card", CARDS.values(), ids=CARDS.keys())


def on(engine: str, since: str, chip: str) -> EngineVersion:
    """Behaviour of a version on an accelerator."""
    version = VERSIONS[f"{engine}-{since}"]
    return tailor(version, CHIPS[chip].memory.usable, CHIPS[chip].family)


def test_the_three_engines_have_a_card() -> None:
    assert CARDS.keys() >= {"vllm", "sglang", "tensorrt-llm"}


@EACH_CARD
def test_versions_ascend(card: EngineCard) -> None:
    order = [tuple(int(part) for part in version.since.split(".")) for version in card.versions]
    assert all(older < newer for older, newer in pairwise(order))


@EACH_CARD
def test_neighbouring_versions_differ(card: EngineCard) -> None:
    bodies = [version.model_dump(exclude={"since"}) for version in card.versions]
    assert all(older != newer for older, newer in pairwise(bodies))


@EACH_CARD
def test_plans_can_be_spelt(card: EngineCard) -> None:
    assert card.flags.keys() >= SETTINGS
    assert all(card.flags.values())


def test_no_two_engines_answer_to_one_name() -> None:
    names = [name for stem, card in CARDS.items() for name in {stem, *card.aliases}]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


@EACH_CARD
def test_cards_are_named_after_their_files(card: EngineCard) -> None:
    assert CARDS[card.name] is card


@EACH_CARD
def test_every_source_that_is_listed_is_used(card: EngineCard) -> None:
    parts = [
        part
        for version in card.versions
        for part in (
            *(version.scheduling, version.caching, version.reserve, version.parallelism, version.startup),
            *version.tiers,
        )
    ]
    assert card.sources.keys() == {part.source for part in parts} - {ASSUMED}


@EACH
def test_behaviour_is_never_assumed(version: EngineVersion) -> None:
    """Only how long a start takes may be a guess."""
    parts = (version.scheduling, version.caching, version.reserve, version.parallelism, *version.tiers)
    assert ASSUMED not in {part.source for part in parts}


@EACH
@pytest.mark.parametrize("chip", CHIPS.values(), ids=CHIPS.keys())
def test_defaults_are_sane_on_every_accelerator(version: EngineVersion, chip: HardwareCard) -> None:
    here = tailor(version, chip.memory.usable, chip.family)
    scheduling, reserve = here.scheduling, here.reserve
    assert 1024 <= scheduling.token_budget <= 32768
    assert 64 <= scheduling.max_batch <= 4096
    assert here.efficiency == "vllm-eager" or 8 <= scheduling.graph_batch <= max(512, scheduling.max_batch)
    assert here.caching.block in {1, 16, 32, 64}
    assert 0.75 <= reserve.fraction <= 0.95
    assert reserve.fixed < reserve.fixed_parallel < 5 * GIB
    assert 10 <= here.startup.init <= 120
    kept = (1 - reserve.fraction) * chip.memory.usable + reserve.fixed_parallel
    assert kept < 0.4 * chip.memory.usable


@given(usable=st.floats(1e9, 1e12), family=st.sampled_from(["ampere", "ada", "hopper", "blackwell", "cdna3"]))
def test_tailoring_twice_changes_nothing_more(usable: float, family: str) -> None:
    for version in VERSIONS.values():
        once = tailor(version, usable, family)
        assert tailor(once, usable, family) == once
        assert once.since == version.since


@EACH
def test_limits_of_memory_belong_to_the_upper_tier(version: EngineVersion) -> None:
    for tier in version.tiers:
        if tier.at_least is not None:
            assert tier.holds(tier.at_least, "hopper")
        if tier.below is not None:
            assert not tier.holds(tier.below, "hopper")


# --- what the engines' own code gives ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "chip", "budget", "batch"),
    [
        ("0.8", "h100-sxm", 8192, 1024),
        ("0.8", "mi300x", 2048, 256),
        ("0.9", "h100-sxm", 8192, 1024),
        ("0.9", "mi300x", 8192, 1024),
        ("0.9", "b200-sxm", 8192, 1024),
        ("0.9", "a100-80gb-sxm", 2048, 256),
        ("0.9", "l40s", 2048, 256),
        ("0.21", "h200-sxm", 8192, 1024),
        ("0.21", "a100-40gb-sxm", 2048, 256),
        ("0.1", "h100-sxm", 4096, 256),
        ("0.2.7", "h100-sxm", 8192, 256),
    ],
)
def test_vllm_budgets_follow_memory_except_on_a100(since: str, chip: str, budget: int, batch: int) -> None:
    """Pull requests 12369, 17073 and 17885 of vLLM."""
    scheduling = on("vllm", since, chip).scheduling
    assert (scheduling.token_budget, scheduling.max_batch) == (budget, batch)


@pytest.mark.parametrize("chip", [name for name in CHIPS if not name.startswith("tpu")])
def test_sglang_fraction_is_what_its_heuristic_leaves(chip: str) -> None:
    """Reserve in MiB at TP1: 512 + 1.5 per token of the chunk + 2 per sequence of the graph + 128; server_args.py."""
    here = on("sglang", "0.5.3", chip)
    capacity = CHIPS[chip].memory.usable / 2**20
    reserve = 512 + 1.5 * here.scheduling.token_budget + 2 * here.scheduling.graph_batch + 128
    reserve = max(reserve, 10 * 1024) if capacity > 60 * 1024 else reserve
    assert here.reserve.fraction == pytest.approx((capacity - reserve) / capacity, abs=0.015)


@pytest.mark.parametrize(
    ("chip", "budget", "graphs"),
    [("l4", 2048, 24), ("l40s", 4096, 32), ("h100-sxm", 8192, 256), ("h200-sxm", 8192, 256), ("b200-sxm", 16384, 512)],
)
def test_sglang_chunks_and_graphs_follow_memory(chip: str, budget: int, graphs: int) -> None:
    scheduling = on("sglang", "0.5.3", chip).scheduling
    assert (scheduling.token_budget, scheduling.graph_batch) == (budget, graphs)


def test_engines_differ_where_their_designs_do() -> None:
    vllm, sglang, trt = (CARDS[name].versions[-1] for name in ("vllm", "sglang", "tensorrt-llm"))
    assert [e.scheduling.steps for e in (vllm, sglang, trt)] == ["mixed", "separate", "mixed"]
    assert [e.scheduling.admission for e in (vllm, sglang, trt)] == ["optimistic", "optimistic", "reserve"]
    assert [e.reserve.fraction_of for e in (vllm, sglang, trt)] == ["usable", "usable", "free"]
    assert [e.reserve.activations for e in (vllm, sglang, trt)] == ["inside", "outside", "inside"]
    assert [e.caching.prefix for e in (vllm, sglang, trt)] == [True, True, True]
    assert not CARDS["vllm"].versions[0].caching.prefix


@pytest.mark.shared
def test_engines_of_the_measurements_are_known(shared: Path) -> None:
    """Spellings without a name of an engine (``TensorRT 10.2``, ``atom``) are the reader's business, not the cards'."""
    names = {name for stem, card in CARDS.items() for name in (stem, *card.aliases)}
    with (shared / "measured" / "development.csv").open(encoding="utf-8", newline="") as file:
        written = {row["engine"].lower() for row in csv.DictReader(file)}
    plain = {name for name in written if name.split()[0] in {"vllm", "sglang", "trt", "trtllm", "tensorrt-llm"}}
    versioned = {name for name in plain if any(character.isdigit() for character in name)}
    unknown = plain - versioned - names
    assert unknown == {"tensorrt-llm (static batch, c++ gptsessionbenchmark era)"} - names
    assert len(plain & names) >= 8
