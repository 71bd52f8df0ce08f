"""Tables of step times err little between their points, and columns stand for themselves."""

from collections.abc import Callable

import numpy as np
import pytest

from planner.engine.chip import chip
from planner.engine.layouts import Layouts, candidates
from planner.engine.step import Machine, body, machine, total
from planner.replica.candidates import Bench
from planner.replica.passes import BATCHES, TOKENS, Passes, decode_operators, rank_batch, tabulate
from planner.spec.catalog import Catalog
from planner.spec.engine import Parallelism
from planner.workload.stats import Bins

CATALOG = Catalog()
CONTEXTS = Bins(value=np.array([1000.0, 8000.0]), share=np.array([0.7, 0.3]))
MODELS = [
    "llama-3.1-8b",
    "llama-3.1-70b",
    "gemma-3-27b",
    "qwen3.5-27b",
    "mixtral-8x7b",
    "qwen3-235b-a22b",
    "deepseek-v3",
]
ACCELERATORS = ["h100-sxm", "l40s", "b200-sxm", "mi300x"]


def counted(name: str, hardware: str = "h100-sxm") -> Machine:
    card = CATALOG.model(name)
    native = card.native_format
    driven = chip(CATALOG.hardware(hardware), CATALOG.efficiency(hardware, "vllm"), native)
    table = candidates(card, 16)
    return machine(card, native, card.checkpoints[native], table, driven, Parallelism(source="assumed"))


def exact_decode(m: Machine, batch: np.ndarray) -> np.ndarray:
    return np.asarray(total(decode_operators(m, batch * np.ones((len(m.layouts), 1)), CONTEXTS)))


@pytest.mark.parametrize("hardware", ACCELERATORS)
@pytest.mark.parametrize("name", MODELS)
def test_the_linear_part_between_points_errs_by_2_percent_at_most(name: str, hardware: str) -> None:
    """A roofline is convex where arithmetic begins to bind, the experts visited are concave: both bend most there."""
    m = counted(name, hardware)
    tokens = np.unique(np.geomspace(1, 32_768, 300).round())
    table = np.array([np.interp(tokens, TOKENS, row) for row in tabulate(m, CONTEXTS).tokens])
    assert np.abs(table / total(body(m, tokens)) - 1.0).max() < 0.02


@pytest.mark.parametrize("name", MODELS)
def test_decode_steps_are_exact_on_the_grid_and_near_it_between(name: str) -> None:
    m = counted(name)
    table = tabulate(m, CONTEXTS)
    # Off a rank's token grid the linear part is interpolated.
    np.testing.assert_allclose(table.decode, exact_decode(m, BATCHES), rtol=0.02)
    batch = np.unique(np.geomspace(1, 1024, 150).round())
    between = np.array([np.interp(batch, BATCHES, row) for row in table.decode])
    assert np.abs(between / exact_decode(m, batch) - 1.0).max() < 0.06


def test_beyond_the_last_point_time_grows_at_its_last_rate() -> None:
    m = counted("llama-3.1-8b")
    of = tabulate(m, CONTEXTS)
    row = np.array([0, 3])
    far = of.linear(row, np.array([[65_536.0, 131_072.0]] * 2))
    near = of.linear(row, np.array([[16_384.0, 32_768.0]] * 2))
    np.testing.assert_allclose(far[:, 1] - far[:, 0], 4.0 * (near[:, 1] - near[:, 0]), rtol=1e-3)
    np.testing.assert_allclose(far, total(body(m, np.array([65_536.0, 131_072.0])))[row], rtol=1e-3)


def test_rows_may_come_in_any_order_and_shape() -> None:
    of: Passes = tabulate(counted("mixtral-8x7b"), CONTEXTS)
    row = np.array([5, 0, 5])
    tokens = np.arange(1.0, 25.0).reshape(3, 2, 4) * 37.0
    got = of.linear(row, tokens)
    assert got.shape == tokens.shape
    for place, layout in enumerate(row):
        np.testing.assert_array_equal(got[[place]], of.linear(np.array([layout]), tokens[[place]]))


@pytest.mark.parametrize("name", ["chat", "agents", "code"])
def test_columns_equal_a_loop_over_rows(bench_of: Callable[..., Bench], name: str) -> None:
    of = bench_of(name)
    m = of.machine
    table = tabulate(m, of.subject.traffic.contexts(), of.adapters)
    np.testing.assert_array_equal(table.decode, of.passes.decode)
    for row in range(0, len(m.layouts), 5):
        card, driven = m.model, m.chip
        layouts = m.layouts.rows(np.array([row]))
        one = machine(card, driven.weights, of.subject.checkpoint, layouts, driven, of.subject.engine.parallelism)
        alone = tabulate(one, of.subject.traffic.contexts(), of.adapters)
        np.testing.assert_array_equal(alone.tokens[0], table.tokens[row])
        np.testing.assert_array_equal(alone.decode[0], table.decode[row])
        np.testing.assert_array_equal(alone.rank_tokens[0], table.rank_tokens[row])


def test_a_micro_batch_has_at_least_one_sequence() -> None:
    m = machine(
        CATALOG.model("llama-3.1-8b"),
        "bf16",
        CATALOG.model("llama-3.1-8b").checkpoints["bf16"],
        Layouts.of([(1, 8, 1, 1)]),
        counted("llama-3.1-8b").chip,
        Parallelism(source="assumed"),
    )
    assert rank_batch(m, np.array([[1.0, 4.0, 8.0, 80.0]])).tolist() == [[1.0, 1.0, 1.0, 10.0]]
