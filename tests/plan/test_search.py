"""The search: every group, splits only where they save, prices and power of what there is."""

from functools import lru_cache

import pytest

from planner.plan.changes import changed
from planner.plan.search import NODE_POWER, Search, largest, node_power, options, pool_key, search, stocks
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
    reserve = shipped(name).scenario.reserve.nodes
    for member in found(name).members:
        of = [offer for offer in found(name).offers if offer.group.names == (member.spec.name,)]
        whole = min((offer.spared(reserve) for offer in of if offer.decision == "together"), default=None)
        splits = [offer.spared(reserve) for offer in of if offer.decision == "split"]
        assert whole is None or all(taken < whole for taken in splits)
        for offer in found(name).dearer:
            if offer.group.names == (member.spec.name,):
                assert whole is not None
                assert offer.decision == "split"
                assert offer.spared(reserve) >= whole


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
