"""Explanations: parts sum to the times and bytes that the plan used, and neighbours are plans or say why not."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from planner.engine.reasons import Reason
from planner.errors import InputError
from planner.plan.anatomy import decode_pass, prefill_pass
from planner.plan.answer import Recommendation, to_json
from planner.plan.explain import explain
from planner.plan.explanation import ExplainedPool, Explanation, Variant
from planner.plan.neighbours import neighbours
from planner.plan.offers import Offer, PoolChoice
from planner.plan.options import Choice
from planner.plan.recommend import choose, recommend
from planner.plan.search import Search, search
from planner.replica.passes import BATCHES, TOKENS
from planner.spec.catalog import Case, Catalog, resolve

REASONS = {str(reason.name).lower() for reason in Reason}
WORKLOADS = [("quickstart", "chat"), *(("orbit", name) for name in ("chat", "agents", "code", "nightly"))]


def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {name: shipped(name) for name in ("quickstart", "orbit")}


@pytest.fixture(scope="module")
def found(cases: dict[str, Case]) -> dict[str, Search]:
    return {name: search(case) for name, case in cases.items()}


@pytest.fixture(scope="module")
def explanations(cases: dict[str, Case]) -> dict[tuple[str, str], Explanation]:
    return {(scenario, name): explain(cases[scenario], name) for scenario, name in WORKLOADS}


@pytest.fixture(scope="module")
def answers(cases: dict[str, Case]) -> dict[str, Recommendation]:
    return {name: recommend(case) for name, case in cases.items()}


def variants(answer: Explanation) -> Iterator[Variant]:
    yield answer.chosen
    yield from answer.neighbours


def pools(answer: Explanation) -> Iterator[ExplainedPool]:
    for variant in variants(answer):
        yield from variant.pools


def choices(found: dict[str, Search]) -> Iterator[PoolChoice]:
    for of in found.values():
        for offer in (*of.offers, *of.dearer):
            yield from offer.pools


@pytest.mark.parametrize("key", WORKLOADS)
def test_chosen_is_what_recommend_chose(
    explanations: dict[tuple[str, str], Explanation], answers: dict[str, Recommendation], key: tuple[str, str]
) -> None:
    answer = explanations[key]
    (plan,) = (plan for plan in answers[key[0]].workloads if plan.name == key[1])
    assert answer.chosen.change == "chosen"
    assert answer.chosen.rejected == ()
    assert answer.chosen.decision == plan.decision
    assert [pool.layout for pool in answer.chosen.pools] == [pool.layout for pool in plan.pools]
    assert [pool.replicas for pool in answer.chosen.pools] == [
        pool.replicas - pool.spare_replicas for pool in plan.pools
    ]
    assert answer.chosen.goodput_share == plan.predicted.goodput_share
    for pool, part in zip(answer.chosen.pools, plan.pools, strict=True):
        assert pool.memory is not None
        assert pool.memory.weights + pool.memory.adapters == pytest.approx(part.memory.weights)
        assert pool.memory.kv == part.memory.kv


@pytest.mark.parametrize("key", WORKLOADS)
def test_parts_of_ttft_sum_to_its_mean(
    explanations: dict[tuple[str, str], Explanation], answers: dict[str, Recommendation], key: tuple[str, str]
) -> None:
    chosen = explanations[key].chosen
    (plan,) = (plan for plan in answers[key[0]].workloads if plan.name == key[1])
    if plan.predicted.ttft is None or plan.predicted.tpot is None:
        assert plan.predicted.deadline is not None
        assert (chosen.ttft, chosen.tpot, chosen.goodput_share) == (None, None, None)
        return
    assert chosen.ttft is not None
    parts = [value for _, value in chosen.ttft]
    assert sum(parts) == pytest.approx(plan.predicted.ttft.mean)
    assert min(parts) >= 0.0
    assert chosen.tpot == pytest.approx(plan.predicted.tpot.mean)


@pytest.mark.parametrize("key", WORKLOADS)
def test_operators_sum_to_their_pass(explanations: dict[tuple[str, str], Explanation], key: tuple[str, str]) -> None:
    passes = [done for pool in pools(explanations[key]) for done in (pool.decode, pool.prefill) if done is not None]
    assert passes
    for done in passes:
        assert sum(item.total for item in done.operators) == pytest.approx(done.seconds, rel=1e-12)
        assert all(item.count > 0 and item.total > 0.0 for item in done.operators)
        assert len({item.operator for item in done.operators}) == len(done.operators)


@pytest.mark.parametrize("key", WORKLOADS)
def test_pools_have_the_passes_of_their_role_and_a_memory_that_is_full(
    explanations: dict[tuple[str, str], Explanation], key: tuple[str, str]
) -> None:
    for pool in pools(explanations[key]):
        if pool.memory is None:
            assert (pool.decode, pool.prefill) == (None, None)
            continue
        assert (pool.decode is None) == (pool.role == "prefill")
        assert (pool.prefill is None) == (pool.role == "decode")
        held = pool.memory
        used = held.weights + held.kv + held.activations + held.reserve + held.adapters
        assert used == pytest.approx(held.capacity)


def test_a_decode_step_is_the_one_that_the_plan_used(found: dict[str, Search]) -> None:
    """At batches of the table and token counts of its grid there is nothing to interpolate."""
    seen = 0
    for choice in choices(found):
        of = choice.replicas
        table, row = of.machine.layouts, of.row[choice.index]
        if of.role == "prefill" or of.subject.adapters is not None:
            continue
        for place, batch in enumerate(BATCHES):
            if table.dp[row] == 1 and max(batch / table.pp[row], 1.0) in TOKENS:
                seconds = decode_pass(choice, float(batch)).seconds
                assert seconds == pytest.approx(float(of.operating.tables.step[choice.index, place]), rel=1e-6)
                seen += 1
    assert seen > 50


def test_between_batches_of_the_table_a_step_is_near(found: dict[str, Search]) -> None:
    for choice in choices(found):
        of = choice.replicas
        if of.role != "prefill":
            for batch in (5.0, 20.0, 50.0):
                planned = float(np.interp(batch, BATCHES, of.operating.tables.step[choice.index]))
                assert decode_pass(choice, batch).seconds == pytest.approx(planned, rel=0.03)


def test_prefill_alone_is_what_a_prefill_pool_takes(cases: dict[str, Case]) -> None:
    """With prompts of one length the mean prompt is every prompt."""
    scenario = cases["quickstart"].scenario
    (work,) = scenario.workloads
    lengths = work.lengths.model_copy(update={"input": work.lengths.input.model_validate({"constant": 2048})})
    sharing = work.sharing.model_copy(update={"hit_rate": 0.0})
    alike = work.model_copy(update={"lengths": lengths, "sharing": sharing})
    case = replace(cases["quickstart"], scenario=scenario.model_copy(update={"workloads": (alike,)}))
    split = [offer for offer in search(case).of(("chat",)) if offer.decision == "split"]
    assert split
    for offer in split:
        first = offer.pools[0]
        of = first.replicas
        assert of.work is not None
        taken = float(of.work.added_mean[of.pair[first.index], 0])
        assert prefill_pass(first, 0.0).seconds == pytest.approx(taken, rel=0.01)


def test_adapters_and_experts_are_operators_of_their_own(
    explanations: dict[tuple[str, str], Explanation],
) -> None:
    def operators(scenario: str, name: str) -> set[str]:
        (pool,) = explanations[scenario, name].chosen.pools
        assert pool.decode is not None
        return {item.operator for item in pool.decode.operators}

    assert "adapters" in operators("orbit", "code")
    assert "adapters" not in operators("orbit", "chat")
    assert "routed experts" in operators("orbit", "agents")
    (pool,) = explanations["orbit", "code"].chosen.pools
    assert pool.memory is not None
    assert pool.memory.adapters > 0.0


@pytest.mark.parametrize("key", WORKLOADS)
def test_neighbours_are_plans_or_say_why_not(
    explanations: dict[tuple[str, str], Explanation], key: tuple[str, str]
) -> None:
    answer = explanations[key]
    changes = [variant.change for variant in variants(answer)]
    assert len(set(changes)) == len(changes)
    assert {"TP doubled", "token budget halved", "token budget doubled"} <= set(changes)
    for variant in answer.neighbours:
        assert set(variant.rejected) <= REASONS
        if variant.rejected:
            assert (variant.accelerators, variant.cost_per_hour) == (None, None)
        else:
            sizes = [(pool.replicas or 0) * pool.accelerators_per_replica for pool in variant.pools]
            assert variant.accelerators == sum(sizes) > 0
            assert variant.cost_per_hour is not None
        if variant.rejected and any(pool.replicas is None for pool in variant.pools):
            assert (variant.ttft, variant.tpot, variant.goodput_share) == (None, None, None)


@pytest.mark.parametrize("key", WORKLOADS)
def test_neighbours_that_are_plans_keep_the_promise(
    cases: dict[str, Case], explanations: dict[tuple[str, str], Explanation], key: tuple[str, str]
) -> None:
    (work,) = (work for work in cases[key[0]].scenario.workloads if work.name == key[1])
    shares = [v.goodput_share for v in explanations[key].neighbours if not v.rejected and v.goodput_share is not None]
    assert shares or work.promise.deadline is not None
    assert all(share >= work.promise.share for share in shares)


def test_a_layout_that_cannot_be_loaded_has_no_figures(explanations: dict[tuple[str, str], Explanation]) -> None:
    unloaded = {"heads", "width", "quant_block", "experts", "links", "engine", "memory"}
    out = [v for answer in explanations.values() for v in answer.neighbours if unloaded & set(v.rejected)]
    assert out
    for variant in out:
        assert (variant.ttft, variant.tpot, variant.goodput_share, variant.accelerators) == (None, None, None, None)
        for pool in variant.pools:
            assert (pool.replicas, pool.decode, pool.prefill, pool.memory) == (None, None, None, None)


def test_a_cut_quantisation_block_is_named(cases: dict[str, Case], found: dict[str, Search]) -> None:
    """Experts of width 1,536 in blocks of 128 cannot be cut eight ways."""
    offer = next(offer for offer in found["orbit"].of(("agents",)) if [p.layout for p in offer.pools] == ["TP4"])
    (member,) = offer.group.members
    (wide,) = (one for one in neighbours(cases["orbit"], found["orbit"], offer, member) if one.change == "TP doubled")
    assert (wide.rejected, wide.sized) == (("quant_block",), False)


def test_one_replica_fewer_breaks_the_promise_and_says_by_how_much(
    cases: dict[str, Case], explanations: dict[tuple[str, str], Explanation]
) -> None:
    for name in ("agents", "code"):
        answer = explanations["orbit", name]
        (fewer,) = (variant for variant in answer.neighbours if variant.change == "one replica fewer")
        (work,) = (work for work in cases["orbit"].scenario.workloads if work.name == name)
        assert fewer.goodput_share is not None
        assert answer.chosen.goodput_share is not None
        assert fewer.goodput_share < work.promise.share <= answer.chosen.goodput_share
        assert fewer.rejected == ("share",)


def test_split_offers_have_neighbours_of_each_pool(cases: dict[str, Case], found: dict[str, Search]) -> None:
    case, of = cases["orbit"], found["orbit"]
    offer = next(offer for offer in of.of(("code",)) if offer.decision == "split" and offer.pools[0].count > 1)
    (member,) = offer.group.members
    beside = list(neighbours(case, of, offer, member))
    changes = {one.change for one in beside}
    assert {"prefill TP doubled", "decode TP doubled", "prefill token budget halved"} <= changes
    assert {"one prefill replica fewer", "prefill and decode together"} <= changes
    for one in beside:
        (touched,) = (
            [place for place in (0, 1) if one.offer.pools[place] is not offer.pools[place]]
            if len(one.offer.pools) == 2
            else [None]
        )
        assert touched is None or one.change.split()[0 if "fewer" not in one.change else 1] == (
            offer.pools[touched].replicas.role
        )


def test_a_pool_sized_anew_is_the_offer_that_the_search_found(cases: dict[str, Case], found: dict[str, Search]) -> None:
    """Halving and then doubling TP returns to the layout, and the replicas that it needs do not depend on the way."""
    case, of = cases["orbit"], found["orbit"]
    offer = next(offer for offer in of.of(("code",)) if offer.decision == "together")
    (member,) = offer.group.members
    (there,) = (one for one in neighbours(case, of, offer, member) if one.change == "TP doubled")
    (back,) = (one for one in neighbours(case, of, there.offer, member) if one.change == "TP halved")
    assert back.offer.pools[0].layout == offer.pools[0].layout
    assert back.offer.pools[0].count == offer.pools[0].count


def test_where_nothing_fits_the_binding_reason_is_named(cases: dict[str, Case]) -> None:
    scenario = cases["quickstart"].scenario
    (work,) = scenario.workloads
    hasty = work.model_copy(update={"promise": work.promise.model_copy(update={"tpot": 1e-4})})
    case = replace(cases["quickstart"], scenario=scenario.model_copy(update={"workloads": (hasty,)}))
    answer = explain(case, "chat")
    assert answer.chosen.rejected == ("tpot",)
    assert answer.chosen.pools == ()
    assert answer.neighbours == ()


def test_without_room_for_all_a_workload_is_explained_alone(cases: dict[str, Case]) -> None:
    scenario = cases["orbit"].scenario
    (stock,) = scenario.cluster.inventory
    cluster = scenario.cluster.model_copy(update={"inventory": (stock.model_copy(update={"nodes": 6}),)})
    case = replace(cases["orbit"], scenario=scenario.model_copy(update={"cluster": cluster}))
    of, choice = choose(case)
    assert not isinstance(choice, Choice)
    chosen = explain(case, "chat").chosen
    own: list[Offer] = [offer for offer in of.offers if offer.group.names == ("chat",)]
    best = min(own, key=lambda offer: offer.spared(1))
    assert chosen.accelerators == best.accelerators
    assert [pool.replicas for pool in chosen.pools] == [pool.count for pool in best.pools]


def test_inputs_name_their_basis_and_source(
    cases: dict[str, Case], explanations: dict[tuple[str, str], Explanation]
) -> None:
    answer = explanations["orbit", "agents"]
    basis = {item.name: item for item in answer.assumptions}
    assert len(basis) == len(answer.assumptions)
    card = cases["orbit"].efficiencies["h100-sxm"]
    assert basis["h100-sxm with vllm: overhead"].basis == card.overhead.basis
    experts = basis["h100-sxm with vllm: experts fp8_block"]
    block = card.formats["fp8_block"].experts
    assert block is not None
    assert (experts.basis, experts.source) == (block.basis, card.sources[block.source])
    assert {"measured", "assumed"} <= {item.basis for item in answer.assumptions}


def test_the_same_case_gives_the_same_bytes(
    cases: dict[str, Case], explanations: dict[tuple[str, str], Explanation]
) -> None:
    assert to_json(explain(cases["orbit"], "code")) == to_json(explanations["orbit", "code"])


def test_an_unknown_workload_is_an_input_fault(cases: dict[str, Case]) -> None:
    with pytest.raises(InputError, match="did you mean 'chat'"):
        explain(cases["orbit"], "chatt")


def test_a_choice_leaves_out_workloads_without_an_offer(cases: dict[str, Case]) -> None:
    scenario = cases["orbit"].scenario
    hasty = {"promise": scenario.workloads[2].promise.model_copy(update={"tpot": 1e-4})}
    works = [work.model_copy(update=hasty) if work.name == "code" else work for work in scenario.workloads]
    case = replace(cases["orbit"], scenario=scenario.model_copy(update={"workloads": tuple(works)}))
    of, choice = choose(case)
    assert isinstance(choice, Choice)
    served = {name for index in choice.options for name in of.offers[index].group.names}
    assert served == {"chat", "agents", "nightly"}
