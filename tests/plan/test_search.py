"""The search: every group, splits only where they save, prices and power of what there is."""

import math
from dataclasses import replace
from functools import lru_cache

import pytest

from planner.plan.changes import changed
from planner.plan.options import Choice
from planner.plan.search import (
    NODE_POWER,
    Search,
    Site,
    largest,
    node_power,
    options,
    pool_key,
    search,
    stocks,
    taken,
)
from planner.plan.solve import solve
from planner.spec.catalog import Case, Catalog, resolve


@lru_cache(maxsize=4)
def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@lru_cache(maxsize=4)
def found(name: str) -> Search:
    return search(shipped(name))


def test_the_groups_of_orbit_are_those_of_one_model() -> None:
    assert set(found("orbit").by_group) == {("chat",), ("agents",), ("code",), ("nightly",), ("chat", "nightly")}


@pytest.mark.parametrize("name", ["orbit", "rtx-documents", "cdna4-summaries"])
def test_a_split_is_on_offer_only_where_it_saves_accelerators(name: str) -> None:
    case = shipped(name)
    (stock,) = case.scenario.cluster.inventory
    site = Site(stock.nodes, case.hardware[stock.hardware].node.accelerators, case.scenario.reserve.nodes)
    for member in found(name).members:
        of = [offer for offer in found(name).offers if offer.group.names == (member.spec.name,)]
        whole = min((taken(offer, site) for offer in of if offer.decision == "together"), default=None)
        splits = [taken(offer, site) for offer in of if offer.decision == "split"]
        assert whole is None or all(took < whole for took in splits)
        for offer in found(name).dearer:
            if offer.group.names == (member.spec.name,):
                assert whole is not None
                assert offer.decision == "split"
                assert taken(offer, site) >= whole


def crowded(nodes: int, reserve: int, share: float) -> Case:
    """A workload that a few nodes hold with several replicas on each, of which ``share`` must be good."""
    case = changed(shipped("quickstart"), "cluster.inventory.h100-sxm.nodes", nodes)
    case = changed(changed(case, "reserve.nodes", reserve), "workloads.chat.promise.share", share)
    return changed(case, "workloads.chat.traffic.rate", 60.0)


@pytest.mark.parametrize("nodes", [3, 4, 6])
@pytest.mark.parametrize("reserve", [1, 2])
@pytest.mark.parametrize("rate", [30.0, 60.0, 90.0])
def test_no_split_that_is_cheaper_as_packed_is_lost(nodes: int, reserve: int, rate: float) -> None:
    """With all splits on offer the best plan is no cheaper, however many spares the nodes force on either."""
    case = changed(crowded(nodes, reserve, 0.95), "workloads.chat.traffic.rate", rate)
    whole = search(case)
    every = replace(whole, offers=[*whole.offers, *whole.dearer])
    few, all_ = (solve(options(one), stocks(case), ["chat"], reserve) for one in (whole, every))
    if isinstance(all_, Choice):
        assert isinstance(few, Choice)
        assert few.objective == pytest.approx(all_.objective)


@pytest.mark.parametrize("nodes", [4, 6])
def test_a_looser_promise_never_costs_more(nodes: int) -> None:
    costs = []
    for share in (0.97, 0.95, 0.92, 0.9, 0.85):
        case = crowded(nodes, 2, share)
        plan = solve(options(search(case)), stocks(case), ["chat"], 2)
        assert isinstance(plan, Choice)
        costs.append(plan.objective)
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize(("count", "saves"), [(10, False), (11, True), (14, True)])
def test_spares_that_few_nodes_force_count_against_one_pool(count: int, saves: bool) -> None:  # noqa: FBT001
    """On eight nodes, two in reserve, 11 replicas go two a node with 4 spares: 15, more than twice 5 and 2 spares."""
    offers = found("orbit").of(("code",))
    one = next(offer for offer in offers if offer.decision == "together" and offer.pools[0].size == 1)
    two = next(offer for offer in offers if [pool.size for pool in offer.pools] == [1, 1])
    one = replace(one, pools=(replace(one.pools[0], count=count),))
    two = replace(two, pools=tuple(replace(pool, count=5) for pool in two.pools))
    sorted_in = Search(found("orbit").members)
    sorted_in.add([one], [two], Site(8, 8, 2))
    assert sorted_in.offers == ([one, two] if saves else [one])
    assert sorted_in.dearer == ([] if saves else [two])


def test_where_one_pool_fits_nowhere_every_split_is_on_offer() -> None:
    offers = found("orbit").of(("code",))
    one = next(offer for offer in offers if offer.decision == "together")
    splits = [offer for offer in offers if offer.decision == "split"]
    sorted_in = Search(found("orbit").members)
    sorted_in.add([replace(one, pools=(replace(one.pools[0], count=10**4),))], splits, Site(8, 8, 2))
    assert sorted_in.offers[1:] == splits
    assert splits


def test_true_spares_grow_as_nodes_become_few() -> None:
    offer = next(one for one in found("orbit").of(("code",)) if len(one.pools) == 1 and one.pools[0].size == 1)
    count = offer.pools[0].count
    assert count > 6
    assert taken(offer, Site(count + 2, 8, 2)) == offer.spared(2) == count + 2
    few = [taken(offer, Site(nodes, 8, 2)) for nodes in range(3, count + 3)]
    assert few == sorted(few, reverse=True)
    assert few[0] > count + 2
    assert taken(offer, Site(2, 8, 2)) == math.inf


def test_counts_of_groups_sum_to_those_of_the_search() -> None:
    whole = found("orbit")
    assert whole.count.tried == sum(count.tried for count in whole.by_group.values())
    assert set(whole.count.rejected) == {key for count in whole.by_group.values() for key in count.rejected}


def test_options_name_their_pools_and_need_spares_only_where_people_wait() -> None:
    whole = found("orbit")
    for index, (option, offer) in enumerate(zip(options(whole), whole.offers, strict=True)):
        assert option.workloads == offer.group.names
        assert [need.pool for need in option.needs] == [pool_key(index, place) for place in range(len(offer.pools))]
        assert [need.size * need.count for need in option.needs] == [pool.accelerators for pool in offer.pools]
        assert {need.spared for need in option.needs} == {bool(offer.group.interactive)}


def test_the_inventorys_price_goes_before_the_cards() -> None:
    case = shipped("quickstart")
    assert stocks(case)[0].price == case.hardware["h100-sxm"].price.per_hour
    assert stocks(changed(case, "cluster.inventory.h100-sxm.price", 1.5))[0].price == 1.5


def test_a_node_takes_its_own_power_or_half_again_that_of_its_accelerators() -> None:
    card = shipped("quickstart").hardware["h100-sxm"]
    bare = card.model_copy(update={"node": card.node.model_copy(update={"power": None})})
    assert node_power(bare) == pytest.approx(NODE_POWER * card.tdp * card.node.accelerators)
    assert node_power(card) == card.node.power
    assert stocks(shipped("quickstart"))[0].power * card.node.accelerators == pytest.approx(node_power(card))


def test_a_replica_is_no_larger_than_its_inventory() -> None:
    case = shipped("quickstart")
    assert largest(case, case.scenario.cluster.inventory[0]) == 8
    assert largest(shipped("orbit"), shipped("orbit").scenario.cluster.inventory[0]) == 64
