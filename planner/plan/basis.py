"""Efficiencies that a plan rests on, each with what it was taken from."""

from collections.abc import Iterator

from planner.plan.explanation import Basis
from planner.plan.offers import Offer, PoolChoice
from planner.spec.catalog import Case
from planner.spec.efficiency import EfficiencyCard, Fit


def efficiencies(case: Case, offer: Offer) -> tuple[Basis, ...]:
    """List the groups of efficiencies that the times of an offer's pools are made from, each once."""
    card = case.efficiencies[offer.hardware]
    out: dict[str, Basis] = {}
    for pool in offer.pools:
        for part, fit in _used(pool, moved=len(offer.pools) > 1):
            item = _basis(card, pool, part, fit)
            out.setdefault(item.name, item)
    return tuple(out.values())


def _used(pool: PoolChoice, *, moved: bool) -> Iterator[tuple[str, Fit]]:
    """Yield the groups that a pool's times are made from; ``moved`` where KV goes from pool to pool."""
    of = pool.replicas
    chip, table, row = of.subject.chip, of.machine.layouts, of.row[pool.index]
    yield "gemm", chip.gemm
    if of.role != "decode":
        yield "prefill_attention", chip.prefill_attention
    if of.role != "prefill":
        yield "decode_attention", chip.decode_attention
    if of.machine.routed:
        yield "experts", chip.experts
    if table.tp[row] > 1:
        yield "all_reduce", chip.collectives.all_reduce
    if table.dp[row] > 1 and of.machine.dispatch == "all_to_all":
        yield "all_to_all", chip.collectives.all_to_all
    elif table.dp[row] > 1:
        yield "all_gather", chip.collectives.all_gather
        yield "reduce_scatter", chip.collectives.reduce_scatter
    if moved or pool.size > chip.domain:
        yield "scale_out", chip.scale_out
    yield "overhead", chip.overhead
    if table.ep[row] > 1:
        yield "imbalance", chip.imbalance


def _basis(card: EfficiencyCard, pool: PoolChoice, part: str, fit: Fit) -> Basis:
    """Describe one group; kernels of another format than asked for are assumed, whatever they were fitted on."""
    replaced = [text for text in pool.replicas.subject.chip.assumed if text.startswith(f"{part} ") and " as " in text]
    formats = [name for name, block in card.formats.items() if getattr(block, part, None) is fit]
    name = replaced[0] if replaced else " ".join([part, *formats[:1]])
    size = int(pool.replicas.machine.layouts.tp[pool.replicas.row[pool.index]])
    return Basis(
        name=f"{card.hardware} with {card.engine}: {name}",
        value=", ".join(_figures(fit, size)),
        unit="",
        basis="assumed" if replaced else fit.basis,
        source=card.sources.get(fit.source, fit.source),
    )


def _figures(fit: Fit, group: int) -> Iterator[str]:
    """Yield the numbers of a group as its card writes them; of collectives those of the nearest group size."""
    for name, value in fit.model_dump(mode="json", exclude={"source", "basis", "band"}).items():
        if not isinstance(value, dict):
            yield f"{name} {value}"
        elif value:
            nearest = min(value, key=lambda size: abs(int(size) - group))
            yield f"{name} of {nearest}: " + ", ".join(f"{key} {figure}" for key, figure in value[nearest].items())
