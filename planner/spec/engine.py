"""What an engine card says: how an inference engine behaves, per version. Not how fast it is."""

import math
from typing import Literal

from pydantic import Field, PositiveInt

from planner.spec.card import Card, Month, Name, Sourced
from planner.units import Bytes, Seconds


class Scheduling(Sourced):
    """How requests share the steps of one replica."""

    steps: Literal["mixed", "separate"]
    """Whether a prefill chunk rides in the decode step, or prefill steps interrupt decoding."""
    token_budget: PositiveInt
    """Default for the most tokens in one step (or one prefill step, where steps are separate)."""
    max_batch: PositiveInt
    """Default for the most sequences that decode together."""
    admission: Literal["optimistic", "reserve"]
    """Admit while blocks last and recompute when they run out; or reserve input + largest output at once."""
    graph_batch: int = Field(ge=0)
    """Largest decode batch that a captured graph serves; 0 where none is captured."""
    chunked: bool = True
    """Whether a prompt that exceeds what is left of the budget is cut by default, rather than made to wait."""


class Caching(Sourced):
    """How the KV cache is kept."""

    block: PositiveInt
    """Tokens of one KV block."""
    prefix: bool
    """Whether prefixes are cached by default."""
    kv_formats: tuple[Literal["bf16", "fp8"], ...] = ("bf16", "fp8")
    """KV formats that the engine can serve."""


class Reserve(Sourced):
    """Memory that never holds KV."""

    fraction: float = Field(gt=0, le=1)
    """Share of the memory that the engine may take."""
    fraction_of: Literal["usable", "free"] = "usable"
    """Whether ``fraction`` is of all usable memory, or, for KV alone, of what weights and activations leave free."""
    activations: Literal["inside", "outside"] = "inside"
    """Whether activations take from ``fraction`` of the usable memory, or live in the rest of it."""
    fixed: Bytes = Field(ge=0)
    """Runtime, communicator and graph memory of one accelerator [B]."""
    fixed_parallel: Bytes = Field(ge=0)
    """The same where more than one accelerator works together [B]."""


class Parallelism(Sourced):
    """How a model may be laid out."""

    pipeline: bool = True
    """Whether pipeline parallelism is supported."""
    expert: bool = True
    """Whether whole experts can be placed on different accelerators."""
    attention_data: bool = True
    """Whether attention can be data-parallel inside one replica."""
    dispatch: Literal["all_gather", "all_to_all"] = "all_gather"
    """How tokens reach experts on other accelerators by default."""


class Startup(Sourced):
    """What a replica does before it can serve, beyond reading its weights."""

    init: Seconds = Field(ge=0)
    """Imports, compilation and graph capture with warm caches [s]."""


class Tier(Sourced):
    """Defaults that an engine changes on some accelerators. What is absent stays as it is."""

    at_least: Bytes | None = Field(default=None, gt=0)
    """Least usable memory of these accelerators [B]; no limit where absent."""
    below: Bytes | None = Field(default=None, gt=0)
    """Usable memory that these accelerators do not reach [B]; no limit where absent."""
    families: tuple[str, ...] = ()
    """Architectures, as ``family`` of hardware cards; all where empty."""
    token_budget: PositiveInt | None = None
    """In place of ``scheduling.token_budget``."""
    max_batch: PositiveInt | None = None
    """In place of ``scheduling.max_batch``."""
    graph_batch: PositiveInt | None = None
    """In place of ``scheduling.graph_batch``."""
    fraction: float | None = Field(default=None, gt=0, le=1)
    """In place of ``reserve.fraction``."""

    def holds(self, usable: float, family: str) -> bool:
        """Tell whether an accelerator with ``usable`` memory [B] of a family belongs to this tier."""
        floor, ceiling = self.at_least or 0.0, self.below or math.inf
        return floor <= usable < ceiling and (not self.families or family in self.families)


class EngineVersion(Card):
    """Behaviour from one version on, until the next one listed."""

    since: str = Field(pattern=r"^\d+(\.\d+)*$", examples=["0.11.0"])
    """First version that behaves so."""
    released: Month | None = None
    """Month of its release, where it tells which version an old measurement was taken on."""
    efficiency: Name | None = None
    """Engine whose efficiency cards hold for these versions; the card's own where absent."""
    scheduling: Scheduling
    caching: Caching
    reserve: Reserve
    parallelism: Parallelism
    startup: Startup
    tiers: tuple[Tier, ...] = ()
    """Defaults by accelerator; the first tier that holds counts. Read them through :func:`tailor`."""


class EngineCard(Card):
    """An inference engine."""

    name: Name
    """Equals the file's stem."""
    title: str
    aliases: tuple[str, ...] = ()
    """Other spellings, lower case, as measurements and commands write them."""
    sources: dict[str, str] = Field(min_length=1)
    flags: dict[str, str]
    """How the engine's command line spells the settings of a plan, by planner's name of the setting."""
    versions: tuple[EngineVersion, ...] = Field(min_length=1)
    """Oldest first."""


def tailor(version: EngineVersion, usable: float, family: str) -> EngineVersion:
    """Behaviour of an engine version on one accelerator: its defaults with the first tier that holds put in.

    Parameters
    ----------
    version
        As on the card.
    usable
        Memory of the accelerator that the driver reports [B].
    family
        Architecture of the accelerator, as on its card.

    """
    tier = next((tier for tier in version.tiers if tier.holds(usable, family)), None)
    if tier is None:
        return version
    fields = ("token_budget", "max_batch", "graph_batch")
    changed = {field: value for field in fields if (value := getattr(tier, field)) is not None}
    scheduling = version.scheduling.model_copy(update=changed)
    share = version.reserve.fraction if tier.fraction is None else tier.fraction
    reserve = version.reserve.model_copy(update={"fraction": share})
    return version.model_copy(update={"scheduling": scheduling, "reserve": reserve})
