"""Every model card is what it says: its name, its sources, its repositories, its published size."""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from planner.engine.cache import token_bytes
from planner.engine.parameters import parameters
from planner.spec.card import read_document
from planner.spec.model import DenseFfn, GroupedAttention, ModelCard

MODELS = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parents[1])) / "models"
CARDS = {path.stem: read_document(path, ModelCard) for path in sorted(MODELS.glob("*.yaml"))}

NOMINAL = {"opt-175b": 2.5e-3, "palm-540b": 2e-5, "kimi-k2": 4e-9, "kimi-k2.5": 4e-9}
"""Largest relative error where the published count is rounded, or counts buffers of unknown use."""

every_card = pytest.mark.parametrize("card", CARDS.values(), ids=CARDS.keys())


@pytest.fixture(scope="module")
def catalog(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "catalog" / "models.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def row_of(card: ModelCard, catalog: dict[str, dict[str, str]]) -> dict[str, str] | None:
    """Row of the catalogue that is counted the same way; those of stub rows and other vocabularies are not."""
    rows = (catalog[name] for name in card.repositories if name in catalog)
    return next((row for row in rows if row["params_computed_main"]), None)


def test_names_are_file_names() -> None:
    assert len(CARDS) >= 29
    assert {stem: card.name for stem, card in CARDS.items() if stem != card.name} == {}


def test_titles_differ() -> None:
    assert len({card.title for card in CARDS.values()}) == len(CARDS)


def test_a_repository_means_one_shape() -> None:
    names = Counter(name.lower() for card in CARDS.values() for name in card.repositories)
    assert [name for name, count in names.items() if count > 1] == []


@every_card
def test_every_checkpoint_on_the_hub_leads_to_its_card(card: ModelCard) -> None:
    published = {checkpoint.repository for checkpoint in card.checkpoints.values() if checkpoint.repository}
    assert published <= set(card.repositories)


@every_card
def test_numbers_name_a_document_and_every_document_is_used(card: ModelCard) -> None:
    used = {card.dimensions, card.parameters.source, *(c.source for c in card.checkpoints.values())}
    if card.stretched:
        used.add(card.stretched.source)
    assert "assumed" not in used
    # What is left over documents a context that differs from the configuration file's.
    assert set(card.sources) - used <= {"paper", "report", "readme"}


@every_card
def test_computed_parameters_are_the_published_ones(card: ModelCard) -> None:
    assert parameters(card).total == pytest.approx(card.parameters.total, rel=NOMINAL.get(card.name, 0), abs=0)


@every_card
def test_stretching_lengthens_the_context(card: ModelCard) -> None:
    assert card.stretched is None or card.stretched.context > card.max_context
    assert card.context >= card.max_context


@every_card
def test_blocks_divide_the_width_of_an_expert(card: ModelCard) -> None:
    blocks = {checkpoint.block for checkpoint in card.checkpoints.values() if checkpoint.block}
    inner = {group.ffn.intermediate for group in card.layers if not isinstance(group.ffn, DenseFfn)}
    assert all(width % block == 0 for block in blocks for width in inner)


@every_card
def test_windows_are_shorter_than_the_context(card: ModelCard) -> None:
    attentions = (group.attention for group in card.layers)
    windows = [a.window for a in attentions if isinstance(a, GroupedAttention) and a.window is not None]
    assert all(window < card.max_context for window in windows)


def test_the_reference_case_has_its_long_context_and_its_block_rule() -> None:
    card = CARDS["qwen3-235b-a22b"]
    assert (card.max_context, card.context) == (40960, 131072)
    assert card.checkpoints["fp8"].block == 128
    assert card.native_format == "bf16"
    assert CARDS["gpt-oss-120b"].checkpoints["mxfp4"].covers == "experts"
    assert CARDS["deepseek-v3"].native_format == "fp8"


@pytest.mark.shared
def test_cards_agree_with_the_catalogue_of_published_models(catalog: dict[str, dict[str, str]]) -> None:
    known = {name: row for name, card in CARDS.items() if (row := row_of(card, catalog))}
    assert len(known) >= 50
    differ = {}
    for name, row in known.items():
        card, count = CARDS[name], parameters(CARDS[name])
        ours = (
            count.total,
            count.active + count.positions,  # the catalogue counts looked-up positions as multiplied
            token_bytes(card, 16, 1, growing=True),
            token_bytes(card, 16, 1, growing=False),
        )
        columns = ("params_computed_main", "params_active_matmul", "kv_bytes_per_token_bf16_full")
        theirs = tuple(int(row[column]) for column in (*columns, "kv_bytes_per_token_bf16_all_layers"))
        if ours != theirs:
            differ[name] = (ours, theirs)
    assert differ == {}


@pytest.mark.shared
def test_served_counts_are_the_stored_ones_less_heads_and_towers(catalog: dict[str, dict[str, str]]) -> None:
    """Within 0.5 % of the stored total less MTP and vision; Qwen3 0.6B and 1.7B and Falcon store a tied head twice."""
    differ = {}
    for name, card in CARDS.items():
        row = row_of(card, catalog)
        if row is None:
            continue
        count = parameters(card)
        stored = int(row["params_total_official"]) - int(row["params_mtp"]) - int(row["params_vision"])
        if name in {"qwen3-0.6b", "qwen3-1.7b", "falcon-180b"}:
            stored -= count.embedding
        if name.startswith("llama-4"):
            stored -= 871_932_416  # the vision tower, which the catalogue does not count
        if abs(count.total / stored - 1) > 0.005:
            differ[name] = count.total / stored - 1
    assert differ == {}


@pytest.mark.shared
def test_every_measured_model_has_a_card(shared: Path) -> None:
    with (shared / "measured" / "development.csv").open(encoding="utf-8", newline="") as file:
        measured = {row["model"] for row in csv.DictReader(file)}
    covered = {name for card in CARDS.values() for name in card.repositories}
    assert measured - covered == set()
