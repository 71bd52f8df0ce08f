"""The recommendation: search, choose, describe."""

from collections.abc import Sequence

from planner import __version__
from planner.plan.answer import (
    Assumption,
    Candidates,
    ClusterUse,
    Infeasible,
    Operations,
    Recommendation,
    RunnerUp,
    Sensitivity,
    Solver,
    WorkloadPlan,
)
from planner.plan.assumptions import assumptions
from planner.plan.budgets import check_budgets
from planner.plan.certainty import Certainty, better, certainty
from planner.plan.describe import Placed, Service, costs, failure_part, headroom, kv_part, pool_part, signals
from planner.plan.offers import Offer
from planner.plan.options import Choice, Shortfall, Stock
from planner.plan.predict import interactive, run
from planner.plan.predicted import Predicted
from planner.plan.scaling import largest_multiple
from planner.plan.search import Search, options, pool_key, search, stocks
from planner.plan.shortfall import without_offer
from planner.plan.solve import runner_up, solve
from planner.plan.subjects import Member, subject
from planner.plan.today import Today, today
from planner.plan.why import nodes_short, reasons
from planner.spec.catalog import Case

NOISE = 1e-9
"""Relative difference of two objectives that is rounding."""
NOTHING = Operations(router=None, admission=None, migration=None, startup=None, scaling=None)


def recommend(case: Case, objective: str = "cost") -> Recommendation:
    """Recommend a plan for a case.

    Parameters
    ----------
    case
        A scenario with its cards.
    objective
        ``cost``, ``nodes`` or ``power`` are minimised; ``goodput`` finds the largest common multiple of all rates that
        the inventory carries, and plans it at least cost.

    Returns
    -------
    Recommendation
        ``feasible`` is false where a workload has no plan; ``infeasible`` then says what binds.

    """
    if objective == "goodput":
        multiple, case = largest_multiple(case)
        answer = recommend(case)
        note = Assumption(
            name="rate multiple", value=multiple, unit="", source="objective goodput: all rates are scaled by it"
        )
        return answer.model_copy(update={"assumptions": (note, *answer.assumptions)})
    found, choice = choose(case, objective)
    names = _served(found)
    missing = [member for member in found.members if member.spec.name not in names]
    problems = [without_offer(case, found, member) for member in missing]
    stock = stocks(case)
    if isinstance(choice, Shortfall):
        problems += nodes_short(choice, stock)
        choice = None
    if choice is None:
        return _answer(case, found, [], problems, stock, None, None)
    services = _services(found, choice, stock)
    second = runner_up(options(found), stock, names, case.scenario.reserve.nodes, objective, choice)
    return _answer(case, found, services, problems, stock, choice, second)


def plan_of(case: Case) -> list[Service]:
    """Return the chosen offers of a case with their pools; empty where there is no plan."""
    found, choice = choose(case)
    if choice is None or isinstance(choice, Shortfall):
        return []
    return _services(found, choice, stocks(case))


def choose(case: Case, objective: str = "cost") -> tuple[Search, Choice | Shortfall | None]:
    """Search all offers of a case and choose among them; None where no workload has an offer."""
    found = search(case)
    names = _served(found)
    choices, stock = options(found), stocks(case)
    return found, solve(choices, stock, names, case.scenario.reserve.nodes, objective) if names else None


def _served(found: Search) -> tuple[str, ...]:
    """Names of the workloads that have an offer, in the order of the scenario."""
    named = {name for offer in found.offers for name in offer.group.names}
    return tuple(member.spec.name for member in found.members if member.spec.name in named)


def _services(found: Search, choice: Choice, stock: Sequence[Stock]) -> list[Service]:
    return [_service(found.offers[index], index, choice, stock) for index in choice.options]


def _service(offer: Offer, index: int, choice: Choice, stock: Sequence[Stock]) -> Service:
    """Give the pools of a chosen offer their spares and their spread."""
    of = next(one for one in stock if one.hardware == offer.hardware)
    names, placed = "+".join(offer.group.names), []
    for place, pool in enumerate(offer.pools):
        key = pool_key(index, place)
        name = f"{names}/{pool.replicas.role}"
        placed.append(Placed(name, pool, choice.spares[key], of.price, of.node_accelerators))
    keys = [pool_key(index, place) for place in range(len(offer.pools))]
    lost = {tuple(dict(node.replicas).get(key, 0) for key in keys) for node in choice.placement}
    return Service(offer, tuple(placed), tuple(sorted(held for held in lost if any(held))))


def predicted(case: Case, service: Service, member: Member) -> Predicted:
    """Predict a workload of a chosen offer."""
    sure = _sure(case, service.offer)
    if member.interactive:
        return interactive(service.offer, member, sure)
    stock = next(one for one in case.scenario.cluster.inventory if one.hardware == service.offer.hardware)
    return run(service.offer, member, subject(case, stock, [member]), sure.step)


def _sure(case: Case, offer: Offer) -> Certainty:
    """Return what is known of the times of an offer."""
    model, family = offer.pools[0].replicas.subject.model, case.hardware[offer.hardware].family
    bands = case.bands.near(case.efficiencies[offer.hardware].calibration, model.name, family)
    return certainty(bands, family, model, confident=case.confident)


def _workload(
    case: Case, found: Search, service: Service, member: Member, now: Sequence[Today], nodes: int
) -> tuple[WorkloadPlan, Sensitivity | None]:
    """Describe the plan of one workload; its cost is filled in by the caller."""
    forecast = predicted(case, service, member)
    ratio = headroom(service, member)
    name = member.spec.name
    shares: dict[str, float | None] = {other.spec.name: None for other in service.offer.group.members}
    plan = WorkloadPlan(
        name=name,
        model=member.spec.model,
        decision="split" if service.offer.decision == "split" else "together",
        reasons=reasons(found, service, member, now, case.scenario.reserve.nodes),
        revisit_when=signals(service, ratio),
        pools=tuple(pool_part(pool, service, name, case.engine.name) for pool in service.pools),
        predicted=forecast,
        kv=kv_part(service, member),
        failure=failure_part(case, service, member, nodes),
        operations=NOTHING,
        cost=costs(service, shares | {name: forecast.goodput_share})[name],
    )
    if ratio is None:
        return plan, None
    return plan, Sensitivity(input=f"workloads.{name}.traffic.rate", elasticity=0.0, flips_at=ratio)


def _answer(
    case: Case,
    found: Search,
    services: Sequence[Service],
    problems: Sequence[Infeasible],
    stock: Sequence[Stock],
    choice: Choice | None,
    second: tuple[Choice, float] | None,
) -> Recommendation:
    nodes = choice.nodes_used if choice else 0
    now = today(case, found.members) if services else ()
    of = {member.spec.name: service for service in services for member in service.offer.group.members}
    made = [
        _workload(case, found, of[member.spec.name], member, now, nodes)
        for member in found.members
        if member.spec.name in of
    ]
    plans = tuple(plan for plan, _ in made)
    total = sum(service.cost for service in services)
    cluster = _cluster(services, stock, choice, total)
    swings = tuple(
        swing.model_copy(update={"elasticity": plan.cost.per_hour / total}) for plan, swing in made if swing is not None
    )
    checks = check_budgets(case, cluster, plans)
    return Recommendation(
        schema_version="1",
        planner_version=__version__,
        scenario=case.scenario.name,
        feasible=not problems and choice is not None,
        within_budgets=all(item.met or item.severity == "warn" for item in checks),
        cluster=cluster,
        workloads=plans,
        candidates=Candidates(tried=found.count.tried, rejected=dict(found.count.rejected)),
        runner_up=_second(case, found, choice, second),
        sensitivities=swings,
        infeasible=tuple(problems),
        assumptions=assumptions(case, services),
        checks=checks,
        solver=Solver(status=choice.status if choice else "infeasible", gap=choice.gap if choice else None),
    )


def _cluster(services: Sequence[Service], stock: Sequence[Stock], choice: Choice | None, cost: float) -> ClusterUse:
    used = sum(pool.accelerators for service in services for pool in service.pools)
    each = {one.hardware: one.power for one in stock}
    power = sum(pool.accelerators * each[service.offer.hardware] for service in services for pool in service.pools)
    spares = sum(
        pool.spares * pool.choice.size / pool.node_accelerators for service in services for pool in service.pools
    )
    return ClusterUse(
        nodes=sum(one.nodes for one in stock),
        nodes_used=choice.nodes_used if choice else 0,
        accelerators=sum(one.nodes * one.node_accelerators for one in stock),
        accelerators_used=used,
        spare_nodes=int(-(-spares // 1)),
        cost_per_hour=cost,
        power_watts=power,
    )


def _second(case: Case, found: Search, choice: Choice | None, second: tuple[Choice, float] | None) -> RunnerUp | None:
    if choice is None or second is None:
        return None
    other, delta = second
    before = {found.offers[index].kind for index in choice.options}
    changes = tuple(found.offers[index].kind for index in other.options if found.offers[index].kind not in before)
    noise = abs(delta) <= NOISE * abs(other.objective)
    apart = [
        [found.offers[index] for index in mine.options if index not in its.options]
        for mine, its in ((choice, other), (other, choice))
    ]
    spreads = {_subject(offer): _sure(case, offer).step.spread for offers in apart for offer in offers}
    costs: list[dict[str, float]] = [{}, {}]
    for cost, offers in zip(costs, apart, strict=True):
        for offer in offers:
            cost[_subject(offer)] = cost.get(_subject(offer), 0.0) + offer.accelerators * _price(case, offer)
    return RunnerUp(
        objective=other.objective,
        delta=0.0 if noise else delta,
        changes=changes,
        probability=better(costs[0], costs[1], spreads),
    )


def _subject(offer: Offer) -> str:
    """Name what shares its errors: a model in its formats on one kind of accelerator."""
    of = offer.pools[0].replicas.subject
    return f"{of.model.name} {of.chip.weights} {of.chip.kv} {offer.hardware}"


def _price(case: Case, offer: Offer) -> float:
    return next(one.price for one in stocks(case) if one.hardware == offer.hardware)
