"""Every hardware card is complete, physically sane, and agrees with the published catalogue."""

import csv
import datetime as dt
import os
import re
from pathlib import Path

import pytest

from planner.spec.card import ASSUMED, read_document
from planner.spec.hardware import HardwareCard
from planner.units import read_quantity

GIB = 2.0**30
DEMANDED = {
    *("a100-40gb-sxm", "a100-80gb-sxm", "a100-80gb-pcie", "h100-sxm", "h100-pcie", "h100-nvl", "h200-sxm", "h200-nvl"),
    *("h20", "h800", "l4", "l40s", "b200-sxm", "b300-sxm", "gb200", "gb300", "rtx-pro-6000-server"),
    *("mi300x", "mi325x", "mi355x", "tpu-v4", "tpu-v5e", "tpu-v6e"),
}
CATALOGUED = {
    "h800": "h800-sxm",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
    "rtx-pro-6000-server": "rtx-pro-6000-bse",
}
"""Rows of the catalogue whose name, in lower case, is not the card's."""
ABSENT = {"h200-nvl"}
"""Cards that the catalogue has no row for."""
RATIOS = {"fp8": (1.0, 2.1), "fp4": (2.0, 6.1), "int8": (0.05, 2.1)}
"""Dense peak of a format over that of bf16. INT8 is cut down on Blackwell Ultra; FP4 there is six times bf16."""


FOLDER = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent)).resolve() / "hardware"
CARDS = {path.stem: read_document(path, HardwareCard) for path in sorted(FOLDER.glob("*.yaml"))}
EACH = pytest.mark.parametrize("card", CARDS.values(), ids=CARDS.keys())


def test_the_demanded_accelerators_have_a_card() -> None:
    assert CARDS.keys() >= DEMANDED


@pytest.mark.parametrize("stem", CARDS)
def test_a_card_is_named_after_its_file(stem: str) -> None:
    assert CARDS[stem].name == stem


@EACH
def test_every_source_that_is_listed_is_used(card: HardwareCard) -> None:
    parts = (card.memory, card.peak, card.scale_up, card.scale_out, card.host, card.node, card.storage, card.price)
    used = {part.source for part in parts} | {card.tdp_source, card.memory.usable_source}
    used |= {card.scale_up.latency_source, card.scale_out.latency_source}
    assert card.sources.keys() == used - {ASSUMED}


@EACH
def test_sources_name_a_document(card: HardwareCard) -> None:
    assert all(len(text.split()) > 3 for text in card.sources.values())


@EACH
def test_what_identifies_a_chip_is_never_assumed(card: HardwareCard) -> None:
    assert ASSUMED not in {card.memory.source, card.peak.source, card.scale_up.source}


@EACH
def test_no_peak_is_a_sparse_one(card: HardwareCard) -> None:
    rates = card.peak.rates
    ratios = {name: rate / rates["bf16"] for name, rate in rates.items() if name != "bf16"}
    assert {name: ratio for name, ratio in ratios.items() if not RATIOS[name][0] <= ratio <= RATIOS[name][1]} == {}


@EACH
def test_a_chip_balances_compute_and_memory(card: HardwareCard) -> None:
    """FLOP for each byte: from 37 (H20) to 419 (L40S), 560 on a TPU v6e. A sparse peak of H100 would give 590."""
    most = 600 if card.vendor == "Google" else 450
    assert 30 < card.peak.rates["bf16"] / card.memory.bandwidth < most


@EACH
def test_the_driver_reports_no_more_than_there_is(card: HardwareCard) -> None:
    assert 0.93 * card.memory.capacity <= card.memory.usable <= card.memory.capacity


@EACH
def test_links_slow_down_with_distance(card: HardwareCard) -> None:
    up, out = card.scale_up, card.scale_out
    assert card.memory.bandwidth > up.bandwidth >= out.bandwidth
    assert up.latency <= out.latency
    assert up.domain <= out.domain
    assert (up.pair_bandwidth or up.bandwidth) <= up.bandwidth
    assert 1e-7 < up.latency < 1e-4


@EACH
def test_a_node_holds_its_accelerators(card: HardwareCard) -> None:
    node = card.node
    if node.power is not None:
        assert 1.0 < node.power / (node.accelerators * card.tdp) < 2.1
    assert node.dram >= node.accelerators * card.memory.usable / 2
    assert card.host.bandwidth <= card.memory.bandwidth


@EACH
def test_storage_reads_at_a_rate_that_drives_reach(card: HardwareCard) -> None:
    assert 1e9 <= card.storage.bandwidth <= 8 * 7.5e9
    assert card.storage.capacity >= 1e12


@EACH
def test_prices_are_dated_and_plausible(card: HardwareCard) -> None:
    match = re.fullmatch(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", card.price.date)
    assert match
    dt.date(*(int(part or 1) for part in match.groups()))
    assert 0.3 < card.price.per_hour < 12


@EACH
def test_assumed_figures_are_explained(card: HardwareCard) -> None:
    """A card that assumes a price or a node says in a comment what it is scaled from."""
    text = (FOLDER / f"{card.name}.yaml").read_text(encoding="utf-8")
    comments = " ".join(line for line in text.splitlines() if line.startswith("#")).lower()
    if card.price.source == ASSUMED:
        assert "price" in comments
    if ASSUMED in {card.node.source, card.storage.source}:
        assert re.search(r"node|storage", comments)


def test_mesh_links_halve_what_a_pair_sees() -> None:
    """Seven links of a mesh: two GPUs alone see one of them."""
    for name in ("mi300x", "mi325x", "mi355x"):
        up = CARDS[name].scale_up
        assert up.pair_bandwidth == pytest.approx(up.bandwidth / 7)


def test_rack_systems_join_72_gpus_of_four_to_a_node() -> None:
    for name in ("gb200", "gb300"):
        assert (CARDS[name].scale_up.domain, CARDS[name].node.accelerators) == (72, 4)


# --- the catalogue ---------------------------------------------------------------------------------------------------


def catalogue(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "catalog" / "accelerators.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    by_name = {spelling.lower(): row for spelling, row in rows.items()}
    return {name: by_name[CATALOGUED.get(name, name)] for name in DEMANDED - ABSENT}


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(DEMANDED - ABSENT))
def test_figures_agree_with_the_catalogue(name: str, shared: Path) -> None:
    row, card = catalogue(shared)[name], CARDS[name]
    pair = card.scale_up.pair_bandwidth or card.scale_up.bandwidth
    figures = {
        "bf16_dense_tflops": card.peak.rates.get("bf16", 0) / 1e12,
        "fp8_dense_tflops": card.peak.rates.get("fp8", 0) / 1e12,
        "fp4_dense_tflops": card.peak.rates.get("fp4", 0) / 1e12,
        "int8_dense_tops": card.peak.rates.get("int8", 0) / 1e12,
        "mem_gb_vendor": card.memory.capacity / GIB,
        "mem_bw_gbs": card.memory.bandwidth / 1e9,
        "link_gbs_per_dir": card.scale_up.bandwidth / 1e9,
        "link_p2p_gbs_per_dir": pair / 1e9,
        "tdp_w": card.tdp,
        "node_gpus": card.node.accelerators,
    }
    stated = {column: value for column, value in figures.items() if re.fullmatch(r"[\d.]+", row[column])}
    assert {"bf16_dense_tflops", "mem_gb_vendor", "mem_bw_gbs"} <= stated.keys()
    assert stated == pytest.approx({column: float(row[column]) for column in stated}, rel=1e-6)
    lacking = {f for f in ("fp8", "fp4") if not row[f"{f}_dense_tflops"]}
    assert not lacking & card.peak.rates.keys()


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(DEMANDED - ABSENT))
def test_usable_memory_is_at_most_what_the_catalogue_saw(name: str, shared: Path) -> None:
    """Logs of several drivers differ; ours is the lower one where the catalogue rounds."""
    reported = catalogue(shared)[name]["mem_gib_reported"]
    seen = float(reported) if reported else CARDS[name].memory.capacity / GIB
    assert 0.93 * seen <= CARDS[name].memory.usable / GIB <= seen * 1.001


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(DEMANDED - ABSENT))
def test_links_to_the_host_and_price_lie_in_the_catalogue(name: str, shared: Path) -> None:
    row, card = catalogue(shared)[name], CARDS[name]
    if match := re.search(r"\(([\d.]+) GB/s\)", row["pcie"]):
        assert card.host.bandwidth == read_quantity(f"{match[1]} GB/s", "B/s")
    if row["price_usd_gpu_h"]:
        low, *high = (float(price) for price in row["price_usd_gpu_h"].split("-"))
        assert low <= card.price.per_hour <= (high[0] if high else low)
    else:
        assert card.price.source == ASSUMED


@pytest.mark.shared
def test_measured_hardware_has_a_card(shared: Path) -> None:
    with (shared / "measured" / "development.csv").open(encoding="utf-8", newline="") as file:
        measured = {row["hardware"] for row in csv.DictReader(file)}
    assert len(measured) > 10
    assert measured <= CARDS.keys()
