"""From cards to what is evaluated: one model on one kind of accelerator, for the workloads of one pool."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from planner.engine.chip import chip, slowed
from planner.plan.certainty import KIND
from planner.replica.candidates import Subject
from planner.spec.catalog import Case
from planner.spec.engine import tailor
from planner.spec.model import Checkpoint, ModelCard, NumberFormat
from planner.spec.scenario import Inventory, WorkloadSpec
from planner.workload.blend import blend
from planner.workload.stats import Workload, summarise

TOGETHER = 4
"""Most workloads of one model for which every grouping is tried; beyond, only all alone or all together."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A workload and its numbers."""

    spec: WorkloadSpec
    numbers: Workload

    @property
    def interactive(self) -> bool:
        """Whether the promise is of TTFT and TPOT."""
        return self.spec.promise.deadline is None


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Workloads that one pool would serve."""

    members: tuple[Member, ...]
    names: tuple[str, ...] = field(init=False)
    """Names of the workloads, in the order of the scenario."""

    def __post_init__(self) -> None:
        """Read the names once: a search asks for them at every comparison."""
        object.__setattr__(self, "names", tuple(member.spec.name for member in self.members))

    @property
    def interactive(self) -> tuple[Member, ...]:
        """Members with a promise of TTFT and TPOT."""
        return tuple(member for member in self.members if member.interactive)

    @property
    def deadline(self) -> tuple[Member, ...]:
        """Members with a deadline."""
        return tuple(member for member in self.members if not member.interactive)


def members(case: Case) -> tuple[Member, ...]:
    """Turn the scenario's workloads into numbers."""
    return tuple(Member(spec, summarise(spec)) for spec in case.scenario.workloads)


def weights_format(spec: WorkloadSpec, model: ModelCard) -> NumberFormat:
    """Format of the weights: asked for, or the checkpoint's own."""
    return spec.weights_dtype or model.native_format


def checkpoint_of(model: ModelCard, weights: NumberFormat) -> Checkpoint:
    """Return the published checkpoint of a format, or a quantisation of the whole model without blocks."""
    return model.checkpoints.get(weights) or Checkpoint(source="assumed")


def _same_service(spec: WorkloadSpec, case: Case) -> tuple[str, str, str, str]:
    """Key of what a replica must be to serve a workload: model, formats and adapters."""
    model = case.models[spec.model]
    adapters = spec.adapters.model_dump_json() if spec.adapters else ""
    return model.name, weights_format(spec, model), spec.kv_dtype or "bf16", adapters


def groups(case: Case, all_members: Sequence[Member]) -> tuple[Group, ...]:
    """All groups of workloads that could share a pool: each alone, then those of one model together.

    Beside interactive work a group has at most one deadline member, and it comes after the group without. Of more than
    :data:`TOGETHER` workloads of one model, all the interactive ones together are tried, and these with each run.
    """
    alike: dict[tuple[str, str, str, str], list[Member]] = {}
    for member in all_members:
        alike.setdefault(_same_service(member.spec, case), []).append(member)
    out = [Group((member,)) for member in all_members]
    for several in alike.values():
        awake = [member for member in several if member.interactive]
        runs = [member for member in several if not member.interactive]
        sizes = range(1, len(awake) + 1) if len(several) <= TOGETHER else [len(awake)]
        for some in chain.from_iterable(combinations(awake, count) for count in sizes if count):
            out += [Group(some)] if len(some) > 1 else []
            out += [Group(tuple(member for member in several if member in some or member is run)) for run in runs]
    return tuple(out)


def subject(case: Case, stock: Inventory, of: Sequence[Member]) -> Subject:
    """Join the cards for the workloads ``of`` one pool on one kind of accelerator."""
    spec = of[0].spec
    model = case.models[spec.model]
    weights = weights_format(spec, model)
    checkpoint = checkpoint_of(model, weights)
    hardware = case.hardware[stock.hardware]
    accelerator = chip(
        hardware,
        case.efficiencies[stock.hardware],
        weights,
        spec.kv_dtype or "bf16",
        block=checkpoint.block is not None,
        scale_out=stock.scale_out,
    )
    numbers = [member.numbers for member in of]
    if case.confident:
        bands = case.bands.near(case.efficiencies[stock.hardware].calibration, model.name, hardware.family)
        late = {name: bands.of(KIND, name, hardware.family, sparse=model.sparse)[1] for name in ("tpot", "ttft")}
        accelerator = slowed(accelerator, late["tpot"])
        numbers = [replace(one, ttft=None if one.ttft is None else one.ttft / late["ttft"]) for one in numbers]
    traffic = blend(numbers)
    behaviour = tailor(case.behaviour, hardware.memory.usable, hardware.family)
    return Subject(model, checkpoint, accelerator, behaviour, traffic, spec.adapters)
