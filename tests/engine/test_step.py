"""Laws of one pass: no faster than light, homogeneous in the rates, monotone, and the sum of its parts."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engine.cache import cached_tokens, kv_bytes_per_token
from planner.engine.chip import Chip
from planner.engine.layouts import Layouts
from planner.engine.matrices import ffn_matrices, matrices
from planner.engine.step import (
    Machine,
    OperatorTime,
    band,
    body,
    decode_attention,
    fullest,
    head,
    machine,
    prefill_attention,
    total,
)
from planner.numeric import Floats
from planner.spec.catalog import Catalog
from planner.spec.engine import Parallelism
from planner.spec.model import Checkpoint, ModelCard

CATALOG = Catalog()
CARDS = {name: CATALOG.model(name) for name in CATALOG.names("model")}
SAMPLE = ["llama-3.1-8b", "palm-540b", "gemma-3-27b", "mixtral-8x7b", "gpt-oss-120b", "deepseek-v3.2", "qwen3.5-27b"]
"""One of each class: dense, parallel block, windows, experts, both, latent and sparse attention, linear attention."""
PLAIN = Checkpoint(source="assumed")
ANY = Parallelism(source="assumed")
LAYOUTS = Layouts.of(
    [(1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1), (4, 1, 1, 4), (2, 2, 1, 1), (4, 1, 2, 8), (1, 1, 8, 8)]
)
ONE = Layouts.of([(1, 1, 1, 1)])

Driven = Callable[..., Chip]
Faster = Callable[[Chip, float], Chip]


def of(card: ModelCard, chip: Chip, layouts: Layouts = LAYOUTS) -> Machine:
    return machine(card, "bf16", PLAIN, layouts, chip, ANY)


def at(context: float) -> tuple[Floats, Floats]:
    return np.array([context]), np.ones(1)


def decode(m: Machine, batch: float, context: float) -> tuple[OperatorTime, ...]:
    rows = np.full((len(m.layouts), 1), batch)
    return (*body(m, rows), head(m, rows), decode_attention(m, rows, at(context)))


def time(m: Machine, batch: float, context: float) -> Floats:
    return np.asarray(total(decode(m, batch, context))[:, 0])


def prompt(m: Machine, tokens: float, start: float = 0.0, chunk: float = 2048.0) -> OperatorTime:
    return prefill_attention(m, np.array([start]), np.array([tokens]), np.array([[chunk]]))


def least_bytes_and_flops(card: ModelCard, tp: int, batch: float, context: int) -> tuple[float, float]:
    """What one accelerator must read [B] and do [FLOP] in a decode step, from the matrices alone: TP only, 16 bits."""
    elements = card.vocabulary * card.hidden / tp
    worked, cache = elements, 0.0
    for group in card.layers:
        for one in (*matrices(group.attention, card.hidden), *ffn_matrices(group.ffn, card.hidden)):
            if one.name == "shared_scale":
                continue
            share = one.held(tp)
            met = visited = 1.0
            if one.part == "routed" and group.ffn.kind == "moe":
                met, count = group.ffn.top_k, group.ffn.experts
                visited = count * (1.0 - (1.0 - met / count) ** batch)
            elements += group.count * share * visited
            worked += group.count * share * met
        kept = int(cached_tokens(group.attention, np.array(context)))
        if group.attention.kind != "mla" or not group.attention.indexer:
            cache += group.count * kept * kv_bytes_per_token(group.attention, 16, tp)
    return 2.0 * elements + batch * cache, 2.0 * batch * worked


@pytest.mark.parametrize("name", CARDS)
@settings(max_examples=20)
@given(power=st.integers(0, 3), batch=st.integers(1, 2048), context=st.integers(1, 100_000))
def test_no_step_is_faster_than_light(
    driven: Driven, at_light_speed: Callable[[Chip], Chip], name: str, power: int, batch: int, context: int
) -> None:
    card, tp = CARDS[name], 2**power
    heads = [one.value_heads if one.kind == "linear" else one.heads for one in (g.attention for g in card.layers)]
    if any(count % tp for count in heads):
        tp = 1
    chip = driven()
    light = time(of(card, at_light_speed(chip), Layouts.of([(tp, 1, 1, 1)])), batch, context)[0]
    moved, worked = least_bytes_and_flops(card, tp, batch, context)
    bound = max(moved / chip.bandwidth, worked / chip.peak)
    assert light >= bound * (1 - 1e-9)
    assert time(of(card, chip, Layouts.of([(tp, 1, 1, 1)])), batch, context)[0] >= light


def test_at_light_speed_a_small_step_is_its_bytes_and_a_large_one_its_flops(
    driven: Driven, at_light_speed: Callable[[Chip], Chip]
) -> None:
    """The bound is reached, but for activations, where one resource binds throughout."""
    card, chip = CARDS["llama-3.1-70b"], driven()
    m = of(card, at_light_speed(chip), ONE)
    moved, _ = least_bytes_and_flops(card, 1, 1, 1000)
    assert time(m, 1, 1000)[0] == pytest.approx(moved / chip.bandwidth, rel=1e-3)
    _, worked = least_bytes_and_flops(card, 1, 4096, 1)
    assert time(m, 4096, 1)[0] == pytest.approx(worked / chip.peak, rel=2e-3)


@pytest.mark.parametrize("hardware", ["h100-sxm", "b200-sxm", "a100-80gb-sxm"])
@pytest.mark.parametrize("name", SAMPLE)
@settings(max_examples=25)
@given(k=st.floats(0.1, 10.0), batch=st.integers(1, 512), context=st.integers(1, 32_768))
def test_times_are_homogeneous_in_the_rates(
    driven: Driven, times_as_fast: Faster, hardware: str, name: str, k: float, batch: int, context: int
) -> None:
    chip = driven(hardware)
    slow, fast = of(CARDS[name], chip), of(CARDS[name], times_as_fast(chip, k))
    pairs = zip(
        (*decode(slow, batch, context), prompt(slow, context)),
        (*decode(fast, batch, context), prompt(fast, context)),
        strict=True,
    )
    for one, other in pairs:
        for part in ("flop_time", "byte_time", "network", "overhead", "total"):
            np.testing.assert_allclose(getattr(one, part), k * getattr(other, part), rtol=1e-9)


@pytest.mark.parametrize("name", SAMPLE)
@settings(max_examples=25)
@given(batch=st.integers(1, 1000), more=st.integers(0, 1000), context=st.integers(1, 50_000), k=st.floats(1.0, 4.0))
def test_more_work_never_takes_less_and_more_bandwidth_never_more(
    driven: Driven, name: str, batch: int, more: int, context: int, k: float
) -> None:
    chip, slack = driven(), 1.0 + 1e-12
    m = of(CARDS[name], chip)
    here = time(m, batch, context)
    assert (time(m, batch + more, context) * slack >= here).all()
    assert (time(m, batch, context + more) * slack >= here).all()
    assert (prompt(m, context + more).total * slack >= prompt(m, context).total).all()
    assert (prompt(m, context, more).total * slack >= prompt(m, context).total).all()
    for rate in ("bandwidth", "peak", "attention_peak", "half_peak", "experts_peak", "scale_out_link"):
        quicker = of(CARDS[name], replace(chip, **{rate: getattr(chip, rate) * k}))
        assert (time(quicker, batch, context) <= here * slack).all()


@pytest.mark.parametrize("name", CARDS)
def test_columns_equal_a_loop_over_rows(driven: Driven, name: str) -> None:
    m = of(CARDS[name], driven())
    tokens = np.array([1.0, 7.0, 256.0, 5000.0])
    batch = np.arange(1.0, 1.0 + 3 * len(LAYOUTS)).reshape(len(LAYOUTS), 3)
    contexts = np.array([10.0, 500.0, 7000.0]), np.array([0.2, 0.5, 0.3])
    start, fresh = np.array([0.0, 300.0]), np.array([900.0, 5000.0])
    chunk = np.full((len(LAYOUTS), 1), 2048.0)
    whole = (
        total(body(m, tokens)),
        total((head(m, batch), decode_attention(m, batch, contexts))),
        prefill_attention(m, start, fresh, chunk).total,
    )
    chosen = prefill_attention(m, start, fresh, chunk[:2], np.array([3, 1])).total
    np.testing.assert_array_equal(chosen, whole[2][[3, 1]])
    for row in range(len(LAYOUTS)):
        one = of(CARDS[name], driven(), LAYOUTS.rows(np.array([row])))
        here = batch[[row]]
        np.testing.assert_array_equal(whole[0][[row]], total(body(one, tokens)))
        np.testing.assert_array_equal(whole[1][[row]], total((head(one, here), decode_attention(one, here, contexts))))
        np.testing.assert_array_equal(whole[2][[row]], prefill_attention(one, start, fresh, chunk[[row]]).total)


@pytest.mark.parametrize("name", SAMPLE)
@settings(max_examples=25)
@given(batch=st.integers(1, 2000), context=st.integers(1, 50_000))
def test_parts_add_up_and_bands_lie_between_those_of_the_parts(
    driven: Driven, name: str, batch: int, context: int
) -> None:
    m = of(CARDS[name], driven())
    operators = decode(m, batch, context)
    for one in (*operators, prompt(m, context)):
        np.testing.assert_allclose(one.compute + one.memory + one.network + one.overhead, one.total)
        assert (np.minimum(one.compute, one.memory) == 0.0).all()
    width = band(operators)
    bands = [one.band for one in operators]
    assert (width <= max(bands) + 1e-12).all()
    assert (width >= min(bands) - 1e-12).all()


@pytest.mark.parametrize("name", SAMPLE)
def test_one_accelerator_has_no_network(driven: Driven, name: str) -> None:
    network = next(
        one for one in body(of(CARDS[name], driven()), np.array([64.0])) if one.name == "collectives"
    ).network
    assert network[0, 0] == 0.0
    assert (network[1:-1] > 0.0).all()
    # Attention ranks of a dense model do not meet.
    assert (network[-1, 0] > 0.0) == any(group.ffn.kind == "moe" for group in CARDS[name].layers)


def test_a_parallel_block_is_reduced_once(driven: Driven) -> None:
    both = CARDS["palm-540b"], CARDS["palm-540b"].model_copy(update={"parallel_block": False})
    once, twice = (body(of(card, driven()), np.array([64.0]))[-3].network[3, 0] for card in both)
    assert once / twice == pytest.approx((118 + 1) / (2 * 118 + 1))


def test_a_replica_over_two_nodes_pays_for_the_links_between_them(driven: Driven) -> None:
    chip = driven()
    layouts = Layouts.of([(8, 2, 1, 1), (4, 2, 1, 1), (1, 1, 16, 16), (1, 1, 8, 8)])
    slow = replace(chip, scale_out_link=chip.scale_out_link / 10)
    card = CARDS["qwen3-30b-a3b"]
    near, far = (body(of(card, one, layouts), np.array([64.0]))[-3].network[:, 0] for one in (chip, slow))
    assert (far > near).tolist() == [True, False, True, False]


def test_all_to_all_sends_each_token_to_its_experts(driven: Driven) -> None:
    card, layouts = CARDS["qwen3-30b-a3b"], Layouts.of([(1, 1, 8, 8), (8, 1, 1, 8)])
    pairs = Parallelism(source="assumed", dispatch="all_to_all")
    m = machine(card, "bf16", PLAIN, layouts, driven(), pairs)
    times = body(m, np.array([1e5, 2e5]))[-3].network
    collective = driven().collectives.all_to_all.ring[8]
    # Of 48 layers: dispatch and combine of 8 copies of a token of 2,048 in 16 bits, 7 of 8 of them elsewhere.
    each = 2 * (collective.latency + 7 / 8 * 8 * 2048 * 2 * 1e5 / collective.bandwidth)
    assert times[0, 0] == pytest.approx(48 * each)
    # Without data-parallel attention every rank has all tokens, so nothing is dispatched.
    gathered = body(of(card, driven(), layouts), np.array([1e5, 2e5]))[-3].network
    np.testing.assert_array_equal(times[1], gathered[1])


@given(tokens=st.integers(1, 5000), ranks=st.sampled_from([1, 2, 4, 8, 16, 64]))
def test_the_fullest_rank_holds_a_share_and_at_most_all(tokens: int, ranks: int) -> None:
    held = fullest(np.array([float(tokens)]), np.array([float(ranks)]))[0]
    assert max(1.0, tokens / ranks) <= held <= tokens
    if ranks == 1:
        assert held == tokens


@pytest.mark.parametrize(("tokens", "ranks"), [(64, 8), (512, 8), (100, 2), (2000, 64)])
def test_the_fullest_rank_as_drawn_is_no_fuller(tokens: int, ranks: int) -> None:
    drawn = np.random.default_rng(1).multinomial(tokens, np.full(ranks, 1 / ranks), 4000).max(axis=1).mean()
    bound = fullest(np.array([float(tokens)]), np.array([float(ranks)]))[0]
    assert drawn <= bound <= 1.35 * drawn


def test_prefill_attention_is_the_sum_that_its_card_states(driven: Driven) -> None:
    """Llama 3.1 8B, 4,096 tokens in chunks of 2,048: 32 layers, 32 heads of 128, 8 for keys and values."""
    chip = driven()
    fit = chip.prefill_attention
    one = prompt(of(CARDS["llama-3.1-8b"], chip, ONE), 4096.0)
    flops = 32 * 2 * 32 * (128 + 128) * 4096**2 / 2
    reach = fit.compute * chip.peak * 2048 / (2048 + fit.half_length)
    read = 32 * 2 * 8 * 128 * 2 * (2048 + 4096)
    fixed = 32 * 2 * fit.kernel
    assert one.total[0, 0] == pytest.approx(flops / reach + read / (fit.memory * chip.bandwidth) + fixed)


def test_every_new_key_is_read_once_even_where_a_window_is_shorter_than_a_chunk(driven: Driven) -> None:
    card = CARDS["gpt-oss-20b"]  # half of the layers look back 128 tokens
    windowed = tuple(group for group in card.layers if getattr(group.attention, "window", None))
    m = of(card.model_copy(update={"layers": windowed}), driven(), ONE)
    layers = sum(group.count for group in windowed)
    read = layers * 2 * 8 * 64 * 2 * (128 + 1000)
    fit = m.chip.prefill_attention
    got = prompt(m, 1000.0, 5000.0).byte_time[0, 0]
    assert got == pytest.approx(read / (fit.memory * m.chip.bandwidth))


def test_scoring_keys_takes_over_at_long_contexts(driven: Driven) -> None:
    """DeepSeek sparse attention reads 2,048 keys and scores all of them: 64 heads of 128, on every accelerator."""
    sparse = of(CARDS["deepseek-v3.2"], driven(), Layouts.of([(8, 1, 1, 1)]))
    fit, peak = sparse.chip.prefill_attention, sparse.chip.attention_peak
    short, long = (prompt(sparse, 1.0, start, 1.0).flop_time[0, 0] for start in (50_000.0, 100_000.0))
    # 61 layers: 64 heads of 128 for each key more, and 132 bytes of index.
    reach = fit.compute * peak / (1.0 + fit.half_length)
    more = 61 * 50_000 * (2 * 64 * 128 / reach + 132 / (fit.memory * sparse.chip.bandwidth))
    assert long - short == pytest.approx(more)


def test_decode_reads_every_key_of_a_window_and_no_more(driven: Driven) -> None:
    m = of(CARDS["gemma-3-27b"], driven(), ONE)
    spread = m.chip.decode_attention.spread
    growing, windowed = 81_920.0, 425_984.0
    for context, read in ((500.0, 500 * (growing + windowed)), (9000.0, 9000 * growing + 1024 * windowed)):
        moved = decode_attention(m, np.array([[4.0]]), at(context)).byte_time[0, 0]
        rate = m.chip.decode_attention.memory * m.chip.bandwidth
        assert moved == pytest.approx(read * (4 + spread / 16) / rate)


def test_a_mixture_of_contexts_is_capped_one_by_one(driven: Driven) -> None:
    m = of(CARDS["gemma-3-27b"], driven(), ONE)
    values, shares = np.array([100.0, 20_000.0]), np.array([0.5, 0.5])
    both = decode_attention(m, np.ones((1, 1)), (values, shares)).byte_time
    each = [decode_attention(m, np.ones((1, 1)), at(value)).byte_time for value in values]
    np.testing.assert_allclose(both, np.mean(each, axis=0))
    assert (both < decode_attention(m, np.ones((1, 1)), at(float(values.mean()))).byte_time).all()
