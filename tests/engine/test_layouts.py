"""Which layouts an engine can load, and why not."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.chip import Chip, chip
from planner.engine.layouts import LARGEST, Layouts, candidates, legality
from planner.engine.reasons import DESCRIPTIONS, Reason, tally
from planner.spec.catalog import Catalog
from planner.spec.engine import Parallelism
from planner.spec.model import Checkpoint, ModelCard

CATALOG = Catalog()
CARDS = [CATALOG.model(name) for name in CATALOG.names("model")]
PLAIN = Checkpoint(source="assumed")
ANY = Parallelism(source="assumed")
DEGREE = st.sampled_from([1, 2, 3, 4, 8, 16, 64])


def on(hardware: str) -> Chip:
    return chip(CATALOG.hardware(hardware), CATALOG.efficiency(hardware, "vllm"))


H100 = on("h100-sxm")


def reasons(card: ModelCard, *rows: tuple[int, int, int, int], checkpoint: Checkpoint = PLAIN) -> list[Reason]:
    return [Reason(int(one)) for one in legality(card, checkpoint, Layouts.of(rows), H100, ANY)]


def test_key_and_value_heads_divide_by_tp_or_tp_by_them() -> None:
    llama = CATALOG.model("llama-3.1-70b")  # 64 heads, 8 of them for keys and values
    assert reasons(llama, (1, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1)) == [Reason(0)] * 3
    assert reasons(llama, (3, 1, 1, 1)) == [Reason.HEADS | Reason.WIDTH | Reason.LINKS]
    falcon = CATALOG.model("falcon-180b")  # 232 heads, 8 for keys and values
    assert Reason.HEADS in reasons(falcon, (16, 1, 1, 1))[0]
    assert Reason.HEADS not in reasons(falcon, (8, 1, 1, 1))[0]


def test_latent_attention_is_divided_by_its_query_heads_alone() -> None:
    deepseek = CATALOG.model("deepseek-v3")
    assert reasons(deepseek, (8, 1, 1, 8)) == [Reason(0)]
    lite = CATALOG.model("deepseek-v2-lite")  # 16 heads
    assert Reason.HEADS not in reasons(lite, (16, 1, 1, 16))[0]
    assert Reason.HEADS in reasons(lite, (32, 1, 1, 32))[0]


def test_a_shard_must_not_cut_a_quantisation_block() -> None:
    """Blocks of 128 in experts of width 1,536: cut 8 ways, a shard would have 192."""
    qwen = CATALOG.model("qwen3-235b-a22b")
    block = qwen.checkpoints["fp8"]
    assert block.block == 128
    assert reasons(qwen, (8, 1, 1, 1), checkpoint=block) == [Reason.QUANT_BLOCK]
    assert reasons(qwen, (8, 1, 1, 8), (4, 1, 1, 1), (8, 1, 1, 2), checkpoint=block) == [Reason(0)] * 3
    assert reasons(qwen, (8, 1, 1, 1)) == [Reason(0)]


def test_experts_are_spread_evenly_or_not_at_all() -> None:
    mixtral = CATALOG.model("mixtral-8x7b")
    assert reasons(mixtral, (8, 1, 1, 8)) == [Reason(0)]
    assert Reason.EXPERTS in reasons(mixtral, (8, 1, 2, 16))[0]
    # Eight groups of four accelerators, or of three out of four: no engine deals them out so.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Reason.EXPERTS in reasons(mixtral, (4, 1, 1, 8))[0]
        assert Reason.EXPERTS in reasons(mixtral, (4, 1, 1, 3))[0]


def test_a_dense_model_has_no_experts_to_spread() -> None:
    llama = CATALOG.model("llama-3.1-70b")
    assert reasons(llama, (4, 1, 1, 4), (4, 1, 1, 2)) == [Reason.EXPERTS] * 2


def test_a_replica_is_a_divisor_of_a_node_or_whole_nodes() -> None:
    llama = CATALOG.model("llama-3.1-405b")
    layouts = Layouts.of([(4, pp, 1, 1) for pp in (1, 2, 3, 4, 6)])
    mask = legality(llama, PLAIN, layouts, H100, ANY)
    assert [bool(one & int(Reason.LINKS)) for one in mask] == [False, False, True, False, False]


def test_tp_stays_inside_the_links_of_a_node() -> None:
    llama = CATALOG.model("llama-3.1-405b")
    assert reasons(llama, (16, 1, 1, 1)) == [Reason.LINKS]
    pairs = on("h100-nvl")  # joined in twos
    mask = legality(llama, PLAIN, Layouts.of([(pairs.domain, 1, 1, 1), (2 * pairs.domain, 1, 1, 1)]), pairs, ANY)
    assert [bool(one & int(Reason.LINKS)) for one in mask] == [False, True]


@pytest.mark.parametrize(
    ("refused", "rows"),
    [("pipeline", [(1, 2, 1, 1)]), ("expert", [(4, 1, 1, 4)]), ("attention_data", [(1, 1, 4, 1), (1, 1, 4, 4)])],
)
def test_an_engine_refuses_what_it_lacks(refused: str, rows: list[tuple[int, int, int, int]]) -> None:
    card = CATALOG.model("qwen3-30b-a3b")
    engine = Parallelism.model_validate({refused: False, "source": "assumed"})
    table = Layouts.of([*rows, (1, 1, 1, 1)])
    assert [bool(one & int(Reason.ENGINE)) for one in legality(card, PLAIN, table, H100, engine)] == [
        *(True for _ in rows),
        False,
    ]
    assert not (legality(card, PLAIN, table, H100, ANY) & int(Reason.ENGINE)).any()


@given(st.sampled_from(CARDS), st.lists(st.tuples(DEGREE, DEGREE, DEGREE, DEGREE), min_size=1, max_size=6))
def test_columns_equal_a_loop_over_rows(card: ModelCard, rows: list[tuple[int, int, int, int]]) -> None:
    """Any layout, however absurd, gets an answer."""
    checkpoint = next(iter(card.checkpoints.values()))
    whole = legality(card, checkpoint, Layouts.of(rows), H100, ANY)
    alone = [legality(card, checkpoint, Layouts.of([row]), H100, ANY)[0] for row in rows]
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_candidates_are_distinct_in_reach_and_in_order(card: ModelCard) -> None:
    table = candidates(card)
    rows = list(zip(table.tp, table.pp, table.dp, table.ep, strict=True))
    assert len(set(rows)) == len(rows)
    assert table.accelerators.max() <= LARGEST
    assert (np.diff(table.accelerators) >= 0).all()
    assert (table.tp * table.dp % table.ep == 0).all()
    assert (table.pp <= card.depth).all()
    if not any(group.ffn.kind == "moe" for group in card.layers):
        assert (table.dp == 1).all()
        assert (table.ep == 1).all()
    assert len(candidates(card, 4)) < len(table)
    assert candidates(card, 4).accelerators.max() == 4


def test_rows_choose_by_place_or_by_mask() -> None:
    table = Layouts.of([(4, 1, 1, 1), (4, 1, 2, 8), (2, 2, 1, 1)])
    assert len(table) == 3
    assert table.rows(np.array([2, 0])).tp.tolist() == [2, 4]
    assert table.rows(table.dp > 1).ep.tolist() == [8]
    assert table.expert_tp.tolist() == [4, 1, 2]


def test_every_reason_has_words_and_is_counted() -> None:
    assert set(DESCRIPTIONS) == set(Reason)
    assert sum(Reason) == 2 ** len(Reason) - 1
    every = np.array([int(reason) for reason in Reason] + [0, sum(Reason)], np.int64)
    assert tally(every) == {str(reason.name).lower(): 2 for reason in Reason}
