"""Memory adds up: what is held, kept back and left for the cache is what the driver reports."""

from collections.abc import Callable

import numpy as np
import pytest

from planner.engine.cache import sequence_bytes
from planner.engine.chip import Chip
from planner.engine.layouts import Layouts
from planner.engine.memory import Memory, activation_bytes, adapter_bytes, adapter_parameters, kv_per_sequence, memory
from planner.engine.step import Machine, machine
from planner.numeric import Floats
from planner.spec.catalog import Catalog
from planner.spec.engine import EngineVersion, Parallelism, tailor
from planner.spec.model import Checkpoint

CATALOG = Catalog()
PLAIN = Checkpoint(source="assumed")
LAYOUTS = Layouts.of([(1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (4, 2, 1, 1), (8, 1, 1, 1)])
ENGINES = ["vllm", "sglang", "tensorrt-llm"]
FORMS = [
    {"fraction": 0.9, "fraction_of": "usable", "activations": "inside"},
    {"fraction": 0.9, "fraction_of": "usable", "activations": "outside"},
    {"fraction": 0.9, "fraction_of": "free"},
]

Driven = Callable[..., Chip]


def of(chip: Chip, name: str = "llama-3.1-70b", layouts: Layouts = LAYOUTS) -> Machine:
    return machine(CATALOG.model(name), "bf16", PLAIN, layouts, chip, Parallelism(source="assumed"))


def behaviour(engine: str, chip: Chip) -> EngineVersion:
    return tailor(CATALOG.engine(engine).versions[-1], chip.usable, "hopper")


def reserving(engine: EngineVersion, form: dict[str, object]) -> EngineVersion:
    reserve = engine.reserve.model_dump() | form
    return engine.model_copy(update={"reserve": engine.reserve.model_copy(update=reserve)})


def held(m: Machine, engine: EngineVersion, budget: int = 2048, batch: int = 256, adapters: float = 0.0) -> Memory:
    n = len(m.layouts)
    return memory(m, PLAIN, engine, np.full(n, budget), np.full(n, batch), np.full(n, adapters))


def parts(of: Memory) -> Floats:
    return of.weights + of.activations + of.reserve + of.adapters


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_parts_sum_to_the_capacity_where_anything_is_left(driven: Driven, engine: str, form: dict[str, object]) -> None:
    chip = driven()
    one = held(of(chip), reserving(behaviour(engine, chip), form), adapters=2e9)
    left = one.kv > 0
    assert not left[0]
    assert left[2:].all()
    np.testing.assert_allclose((parts(one) + one.kv)[left], one.capacity[left])
    assert (parts(one)[~left] >= one.capacity[~left]).all()
    assert (one.capacity == chip.usable).all()


def test_a_share_of_all_memory_holds_everything(driven: Driven) -> None:
    chip = driven()
    engine = reserving(behaviour("vllm", chip), FORMS[0])
    one = held(of(chip), engine)
    fixed = engine.reserve.fixed_parallel
    np.testing.assert_allclose(one.kv[2:], (0.9 * chip.usable - one.weights - one.activations - fixed)[2:])


def test_activations_outside_live_in_the_rest(driven: Driven) -> None:
    chip = driven()
    one = held(of(chip), reserving(behaviour("sglang", chip), FORMS[1]))
    np.testing.assert_allclose(one.kv[2:], (0.9 * chip.usable - one.weights)[2:])
    # Where the rest is too small for them, they take from the cache after all.
    full = reserving(behaviour("sglang", chip), FORMS[1] | {"fraction": 1.0})
    tight = held(of(chip), full)
    fixed = full.reserve.fixed_parallel
    np.testing.assert_allclose(tight.kv[2:], (chip.usable - tight.weights - tight.activations - fixed)[2:])


def test_a_share_of_what_is_free_goes_to_the_cache(driven: Driven) -> None:
    chip = driven()
    engine = reserving(behaviour("tensorrt-llm", chip), FORMS[2])
    one = held(of(chip), engine, adapters=1e9)
    free = chip.usable - one.weights - one.activations - one.adapters - engine.reserve.fixed_parallel
    np.testing.assert_allclose(one.kv[2:], 0.9 * free[2:])


def test_rows_choose_layouts_and_repeat_them(driven: Driven) -> None:
    chip = driven()
    m, engine = of(chip), behaviour("vllm", chip)
    row = np.array([4, 2, 4])
    budget, batch = np.array([512, 4096, 8192]), np.array([8, 64, 512])
    whole = memory(m, PLAIN, engine, budget, batch, np.zeros(3), row)
    for place in range(3):
        at = slice(place, place + 1)
        alone = memory(m, PLAIN, engine, budget[at], batch[at], np.zeros(1), row[at])
        for name in ("weights", "activations", "reserve", "adapters", "kv"):
            assert getattr(whole, name)[place] == getattr(alone, name)[0]


def test_activations_grow_with_tokens_and_shrink_with_tp() -> None:
    card = CATALOG.model("llama-3.1-70b")
    budget, batch = np.full(5, 8192), np.full(5, 256)
    one = activation_bytes(card, LAYOUTS, budget, batch)
    assert (activation_bytes(card, LAYOUTS, 2 * budget, batch) > one).all()
    assert (activation_bytes(card, LAYOUTS, budget, 2 * batch) > one).all()
    assert one[0] > one[1] > one[2] == one[3] > one[4]
    # Four rows of width 8,192 and three of 28,672 for each token, and the logits of 256 rows.
    assert one[0] == pytest.approx(8192 * 2 * (4 * 8192 + 3 * 28672) + 256 * 6 * 128256)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "gemma-3-27b", "deepseek-v3", "qwen3.5-397b-a17b"])
def test_a_sequence_takes_whole_blocks_of_the_fullest_stage(driven: Driven, name: str) -> None:
    m = of(driven(), name)
    contexts = np.array([1.0, 16.4, 17.0, 5000.0])
    got = kv_per_sequence(m, contexts, 16)
    assert got.shape == (len(LAYOUTS), 4)
    depth = m.model.depth
    for row, (tp, pp) in enumerate(zip(LAYOUTS.tp, LAYOUTS.pp, strict=True)):
        share = -(-depth // pp) / depth
        want = [sequence_bytes(m.model, tokens, 16, int(tp), 16) * share for tokens in (1, 16, 17, 5000)]
        np.testing.assert_allclose(got[row], np.array(want, float))


@pytest.mark.parametrize(
    ("name", "targets", "per_rank"),
    [
        # 80 layers: q and o 8,192 + 8,192, k and v 8,192 + 1,024; gate, up and down 8,192 + 28,672.
        ("llama-2-70b", "attention", 80 * (2 * 16384 + 2 * 9216)),
        ("llama-2-70b", "all", 80 * (2 * 16384 + 2 * 9216 + 3 * 36864)),
        # 61 layers: q down and up, latent down and up, o; of 58 layers the experts are not adapted, of 3 the dense are.
        (
            "deepseek-v3",
            "all",
            61 * (7168 + 1536 + 1536 + 128 * 192 + 7168 + 576 + 512 + 128 * 256 + 128 * 128 + 7168)
            + 3 * 3 * (7168 + 18432),
        ),
    ],
)
def test_adapters_have_a_row_and_a_column_of_each_matrix(name: str, targets: str, per_rank: int) -> None:
    card = CATALOG.model(name)
    assert adapter_parameters(card, 1, targets) == per_rank
    assert adapter_parameters(card, 16, targets) == 16 * per_rank
    assert adapter_bytes(card, 16, targets) == 32 * per_rank


def test_an_index_takes_no_adapter() -> None:
    sparse, whole = CATALOG.model("deepseek-v3.2"), CATALOG.model("deepseek-v3")
    assert adapter_parameters(sparse, 8, "attention") == adapter_parameters(whole, 8, "attention")


def test_linear_attention_adapts_queries_keys_values_and_output() -> None:
    card = CATALOG.model("qwen3.5-27b")
    linear = card.model_copy(update={"layers": tuple(g for g in card.layers if g.attention.kind == "linear")})
    a = linear.layers[0].attention
    assert a.kind == "linear"
    keys, values = a.key_heads * a.key_dim, a.value_heads * a.value_dim
    layers = sum(group.count for group in linear.layers)
    assert adapter_parameters(linear, 1, "attention") == layers * (4 * card.hidden + 2 * keys + 2 * values)
