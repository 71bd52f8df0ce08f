"""What an answer rests on without a measurement."""

from collections.abc import Iterator, Sequence

from planner.fleet.goodput import WINDOW
from planner.fleet.waiting import SHORTEST_QUEUE
from planner.plan.answer import Assumption
from planner.plan.certainty import KIND
from planner.plan.describe import Service
from planner.spec.catalog import Case
from planner.spec.hardware import HardwareCard


def _card(card: HardwareCard) -> list[Assumption]:
    """Figures of a hardware card whose source is ``assumed``."""
    parts = {
        "price": (card.price.per_hour, "USD/h", card.price.source),
        "node DRAM": (card.node.dram, "B", card.node.source),
        "storage bandwidth": (card.storage.bandwidth, "B/s", card.storage.source),
        "host link": (card.host.bandwidth, "B/s", card.host.source),
        "scale-up latency": (card.scale_up.latency, "s", card.scale_up.latency_source),
        "scale-out latency": (card.scale_out.latency, "s", card.scale_out.latency_source),
    }
    return [
        Assumption(name=f"{card.name}: {name}", value=value, unit=unit, source="assumed on the hardware card")
        for name, (value, unit, source) in parts.items()
        if source == "assumed"
    ]


def assumptions(case: Case, services: Sequence[Service]) -> tuple[Assumption, ...]:
    """List the assumptions behind a plan, each once, in a fixed order."""
    out = [
        Assumption(
            name="router",
            value="join the replica with the fewest waiting prompt tokens",
            unit="",
            source=f"waits {SHORTEST_QUEUE:.0%} longer than one shared queue (simulated, 8 servers at load 0.8)",
        ),
        Assumption(
            name="window of the moving rate",
            value=WINDOW,
            unit="s",
            source="dispersion in this window; waits within it",
        ),
    ]
    for stock in case.scenario.cluster.inventory:
        out += _card(case.hardware[stock.hardware])
    if case.confident:
        note = "--confident: the 90th percentile of what was measured over what is predicted"
        out.append(Assumption(name="step times and TTFT", value="long end of their bands", unit="", source=note))
    seen: set[str] = set()
    for service in services:
        of = service.offer.pools[0].replicas.subject
        family, kind = case.hardware[service.offer.hardware].family, "a sparse" if of.model.sparse else "a dense"
        text = f"band of step times of {kind} model on {family}"
        if text not in seen and not case.bands.measured(KIND, "tpot", family):
            seen.add(text)
            low, high = case.bands.of(KIND, "tpot", family, sparse=of.model.sparse)
            source = "no engine was measured on this family: the band is that of families left out of the fit"
            out.append(Assumption(name=text, value=f"{low:g} to {high:g}", unit="", source=source))
    for service in services:
        for pool in service.pools:
            chip = pool.choice.replicas.subject.chip
            for name in chip.assumed:
                text = f"{chip.hardware} with {case.engine.name}: {name}"
                if text not in seen:
                    seen.add(text)
                    out.append(Assumption(name=text, value="efficiency", unit="", source="not measured on this pair"))
    return (*out, *_extrapolated(case, services))


def _extrapolated(case: Case, services: Sequence[Service]) -> Iterator[Assumption]:
    """Say what of a plan lies outside the range that a calibrated card was measured over."""
    said: set[str] = set()
    for service in services:
        for pool in service.pools:
            of, chosen = pool.choice.replicas, pool.choice.index
            calibration = case.efficiencies[service.offer.hardware].calibration
            if calibration is None:
                continue
            table, row, on = of.machine.layouts, of.row[chosen], of.subject
            beyond = calibration.valid.beyond(
                models=on.model.name,
                weights=on.chip.weights,
                kv=on.chip.kv,
                tp=float(table.tp[row]),
                pp=float(table.pp[row]),
                ep=float(table.ep[row]),
                input=on.traffic.input.mean,
                output=on.traffic.output.mean,
            )
            name = f"calibration {calibration.name} of {service.offer.hardware}"
            for problem in beyond:
                if f"{name}{problem}" not in said:
                    said.add(f"{name}{problem}")
                    yield Assumption(name=name, value="extrapolated", unit="", source=problem)
