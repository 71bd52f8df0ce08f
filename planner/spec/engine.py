"""What an engine card says: how an inference engine behaves, per version. Not how fast it is."""

from typing import Literal

from pydantic import Field, PositiveInt

from planner.spec.card import Card, Name, Sourced
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
    graph_batch: PositiveInt
    """Largest decode batch that a captured graph serves."""


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
    """Share of the usable memory that the engine may take."""
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


class EngineVersion(Card):
    """Behaviour from one version on, until the next one listed."""

    since: str = Field(pattern=r"^\d+(\.\d+)*$")
    """First version that behaves so."""
    scheduling: Scheduling
    caching: Caching
    reserve: Reserve
    parallelism: Parallelism
    startup: Startup


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
