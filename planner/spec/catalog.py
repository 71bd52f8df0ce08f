"""A scenario with all its cards in hand, once they agree with each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from planner.errors import Fault, InputError, shorten
from planner.spec.bands import Bands, shipped_bands
from planner.spec.budget import misfits
from planner.spec.card import Card
from planner.spec.efficiency import EfficiencyCard
from planner.spec.engine import EngineCard, EngineVersion
from planner.spec.folders import KINDS, Catalog, Kind, shipped
from planner.spec.hardware import HardwareCard
from planner.spec.lengths import largest, within
from planner.spec.model import ModelCard
from planner.spec.scenario import Scenario, WorkloadSpec
from planner.spec.text import Document, Location, dotted

__all__ = ["Case", "resolve", "largest", "version_key", "Catalog", "KINDS", "Kind", "shipped"]

ALWAYS_SERVED = frozenset({"bf16", "fp8", "int8", "int4"})
"""Number formats into which any checkpoint can be brought without training."""
AnyCard = TypeVar("AnyCard", bound=Card)


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario and the cards that it names."""

    scenario: Scenario
    """With the cards' own names, whatever spelling its file has."""
    models: Mapping[str, ModelCard]
    """Models by name."""
    hardware: Mapping[str, HardwareCard]
    """Accelerators by name."""
    engine: EngineCard
    behaviour: EngineVersion
    """How the engine's chosen version behaves."""
    efficiencies: Mapping[str, EfficiencyCard]
    """Efficiencies of the engine, by accelerator."""
    bands: Bands
    """How far measurements lie from predictions."""
    confident: bool = False
    """Whether step times are planned with at the long end of their band."""


def resolve(scenario: Scenario, catalog: Catalog, path: Path | None = None) -> Case:
    """Return the scenario with its cards.

    Raises :class:`InputError` with every name that is unknown, every card that is at fault, and every wish that the
    cards cannot fulfil. ``path`` is the scenario's file, for the lines of the faults.
    """
    desk = _Desk(catalog, catalog.document(path) if path is not None else None)
    engine = desk.fetch(("engine", "name"), lambda: catalog.engine(scenario.engine.name))
    behaviour = desk.behaviour(engine, scenario.engine.version) if engine else None
    hardware: dict[str, HardwareCard] = {}
    efficiencies: dict[str, EfficiencyCard] = {}
    for index, inventory in enumerate(scenario.cluster.inventory):
        place: Location = ("cluster", "inventory", index, "hardware")
        accelerator = desk.fetch(place, lambda name=inventory.hardware: catalog.hardware(name))  # type: ignore[misc]
        if accelerator is None:
            continue
        if accelerator.name in hardware:
            desk.note(place, _listed_twice(inventory.hardware, accelerator), shorten(inventory.hardware))
            continue
        hardware[accelerator.name] = accelerator
        driver = kernels(engine, behaviour) if engine is not None and behaviour is not None else None
        efficiency = desk.efficiency(place, accelerator, driver) if driver is not None else None
        if efficiency is not None:
            efficiencies[accelerator.name] = efficiency
    models: dict[str, ModelCard] = {}
    for index, work in enumerate(scenario.workloads):
        found = desk.fetch(
            ("workloads", index, "model"),
            lambda name=work.model: catalog.model(name),  # type: ignore[misc]
        )
        if found is not None:
            models[work.model] = found
            desk.judge(index, work, found, behaviour)
    desk.budgets(scenario)
    if desk.faults or engine is None or behaviour is None:
        raise InputError(desk.faults)
    spelled = _with_card_names(scenario, engine, tuple(hardware), models)
    return Case(
        spelled,
        {card.name: card for card in models.values()},
        hardware,
        engine,
        behaviour,
        efficiencies,
        shipped_bands(),
    )


def _listed_twice(written: str, card: HardwareCard) -> str:
    also = "" if written == card.name else f", which is {card.name!r},"
    return (
        f"{shorten(written)}{also} is listed twice; sum the nodes in one line, "
        "or copy its card under another name where price or links differ"
    )


def _with_card_names(
    scenario: Scenario, engine: EngineCard, hardware: Sequence[str], models: Mapping[str, ModelCard]
) -> Scenario:
    """Return the scenario with the cards' own names, so that nothing behind this door meets another spelling.

    The tails of lengths end where the context of the model does.
    """
    stock = [
        line.model_copy(update={"hardware": name})
        for line, name in zip(scenario.cluster.inventory, hardware, strict=True)
    ]
    workloads = [
        work.model_copy(update={"model": model.name, "lengths": within(work.lengths, model.context)})
        for work in scenario.workloads
        for model in (models[work.model],)
    ]
    return scenario.model_copy(
        update={
            "cluster": scenario.cluster.model_copy(update={"inventory": tuple(stock)}),
            "engine": scenario.engine.model_copy(update={"name": engine.name}),
            "workloads": tuple(workloads),
        }
    )


@dataclass(slots=True)
class _Desk:
    """Where the faults of one scenario are gathered."""

    catalog: Catalog
    document: Document | None
    faults: list[Fault] = field(default_factory=list)

    def note(self, location: Location, problem: str, value: str) -> None:
        """Add a fault of the scenario."""
        if self.document is not None:
            self.faults.append(self.document.fault(location, problem, value))
        else:
            self.faults.append(Fault("", None, dotted(location), value, problem))

    def fetch(self, location: Location, read: Callable[[], AnyCard]) -> AnyCard | None:
        """Return a card, or None with its faults noted: at ``location`` where no file holds it."""
        try:
            return read()
        except InputError as error:
            for fault in error.faults:
                if not fault.file:
                    self.note(location, fault.problem, fault.value)
                elif fault not in self.faults:
                    self.faults.append(fault)
            return None

    def efficiency(self, location: Location, hardware: HardwareCard, engine: str) -> EfficiencyCard | None:
        """Return the efficiencies of an engine on an accelerator."""
        names = self.catalog.names("efficiency")
        if f"{hardware.name}--{engine}" in names:
            return self.fetch(location, lambda: self.catalog.efficiency(hardware.name, engine))
        served = [name.split("--")[0] for name in names if name.endswith(f"--{engine}")]
        known = ", ".join(served[:12]) or "no hardware yet"
        problem = f"no efficiency card says how fast {engine} is on {hardware.name!r}; there are some for {known}"
        self.note(location, problem, shorten(hardware.name))
        return None

    def behaviour(self, engine: EngineCard, version: str) -> EngineVersion | None:
        """Return how a version of an engine behaves: as the newest listed version that is not newer."""
        if (found := newest(engine, version)) is not None:
            return found
        oldest = min(engine.versions, key=lambda listed: version_key(listed.since)).since
        problem = f"{shorten(version)} is older than {oldest}, the oldest version of {engine.name} that is known"
        self.note(("engine", "version"), f"{problem}, for example version: '{oldest}'", version)
        return None

    def judge(self, index: int, work: WorkloadSpec, model: ModelCard, behaviour: EngineVersion | None) -> None:
        """Hold a workload against its model and its engine."""
        place: Location = ("workloads", index)
        formats = ALWAYS_SERVED | set(model.checkpoints)
        if work.weights_dtype is not None and work.weights_dtype not in formats:
            known = ", ".join(sorted(formats))
            problem = f"{work.weights_dtype!r} is no checkpoint of {model.name}, which can be served as {known}"
            self.note((*place, "weights_dtype"), problem, work.weights_dtype)
        cache = work.kv_dtype or "bf16"
        if behaviour is not None and cache not in behaviour.caching.kv_formats:
            known = ", ".join(behaviour.caching.kv_formats)
            problem = f"{cache!r} is no KV format of the engine since {behaviour.since}, which serves {known}"
            self.note((*place, "kv_dtype"), problem, cache)
        given, made = largest(work.lengths.input), largest(work.lengths.output)
        if given + made > model.context:
            problem = (
                f"input of up to {given:.0f} and output of up to {made:.0f} tokens exceed the context of {model.name}, "
                f"{model.context} tokens; shorten them to {model.context} in sum"
            )
            self.note((*place, "lengths"), problem, f"{given + made:.0f}")

    def budgets(self, scenario: Scenario) -> None:
        """Hold the budgets against the workloads that they name."""
        interactive = [work.name for work in scenario.workloads if work.promise.deadline is None]
        for index, name, value, problem in misfits(scenario.budgets, interactive):
            self.note(("budgets", index, name), problem, value)


def kernels(engine: EngineCard, version: EngineVersion) -> str:
    """Name of the engine whose efficiency cards hold for a version."""
    return version.efficiency or engine.name


def in_use(engine: EngineCard, month: str) -> EngineVersion:
    """Return the newest version that is known to be out by a month, such as ``2023-11``; the oldest where none is."""
    out = [listed for listed in engine.versions if listed.released is not None and listed.released <= month]
    return max(out, key=lambda listed: version_key(listed.since), default=engine.versions[0])


def newest(engine: EngineCard, version: str) -> EngineVersion | None:
    """Return the newest listed version of an engine that is not newer than ``version``; None where all are."""
    wanted = version_key(version)
    fitting = [listed for listed in engine.versions if version_key(listed.since) <= wanted]
    return max(fitting, key=lambda listed: version_key(listed.since), default=None)


def version_key(version: str) -> tuple[tuple[int, str], ...]:
    """Return a version such that newer ones compare greater; trailing zeros do not count.

    >>> version_key("0.9.2") < version_key("0.11") == version_key("0.11.0")
    True
    """
    # Length, then digits, orders numbers of any length, which int() does not read.
    numbers = [part.lstrip("0") for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple((len(number), number) for number in numbers)
