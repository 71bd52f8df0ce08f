"""What a calibration is made from: files of measurements, as rows of one accelerator and one engine."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.check.asked import Served, served
from planner.check.expression import Expressed, InexpressibleError, express
from planner.check.observed import observations
from planner.check.single import Settings
from planner.errors import InputError, shorten
from planner.intake.observations import read
from planner.intake.results import is_result, read_results
from planner.spec.catalog import Catalog, kernels, newest
from planner.spec.efficiency import EfficiencyCard
from planner.spec.observation import Observation


@dataclass(frozen=True, slots=True)
class Target:
    """What is calibrated, and from where."""

    hardware: str
    """Name of a hardware card."""
    engine: str
    """Name of an engine card."""
    version: str | None
    """Of the engine, where it is said."""
    card: EfficiencyCard
    """To start from, named as what it becomes."""
    start: str
    """``HARDWARE--ENGINE`` of the card to start from."""

    @property
    def carried(self) -> bool:
        """Whether the card to start from is of another accelerator or engine."""
        return self.start != f"{self.card.hardware}--{self.card.engine}"


@dataclass(frozen=True, slots=True)
class Material:
    """Measurements of a target."""

    rows: tuple[Expressed, ...]
    unused: Counter[str]
    """Rows that cannot be used, by reason."""
    files: tuple[str, ...]
    """Names of the files."""
    unknown: tuple[str, ...]
    """Flags of the serving commands that are not known, and may have changed what was measured."""


def target(hardware: str, engine: str, start: str | None, catalog: Catalog) -> Target:
    """Find what is calibrated.

    Parameters
    ----------
    hardware
        Name of a hardware card.
    engine
        Name of an engine card, with its version behind an ``@`` where it is known.
    start
        ``HARDWARE--ENGINE`` of the card to start from; None: that of the pair itself.
    catalog
        Where the cards are.

    Raises
    ------
    InputError
        Where one of them is not known, or the pair has no card to start from.

    """
    name, _, version = engine.partition("@")
    chip, card = catalog.hardware(hardware), catalog.engine(name)
    behaviour = newest(card, version) if version else card.versions[-1]
    family = kernels(card, behaviour or card.versions[0])
    own = f"{chip.name}--{family}"
    if start is None and own not in catalog.names("efficiency"):
        near = sorted(one for one in catalog.names("efficiency") if one.partition("--")[2] == family)
        problem = f"there is no efficiency card of {family} on {chip.name} to start from; add --from {near[0]}"
        raise InputError.of(problem, field="--from", value=own)
    said = start or own
    first, dashes, second = said.partition("--")
    if not dashes:
        problem = f"{shorten(said)} names no efficiency card, for example {own}"
        raise InputError.of(problem, field="--from", value=said)
    found = catalog.efficiency(first, second)
    return Target(
        chip.name,
        card.name,
        version or None,
        found.model_copy(update={"hardware": chip.name, "engine": family}),
        f"{found.hardware}--{found.engine}",
    )


def material(files: Sequence[Path], serve: Sequence[str], of: Target, catalog: Catalog) -> Material:
    """Read files of measurements; those of other accelerators and engines are counted, not used.

    ``serve`` has the commands that served during the runs of result files, in order, or one for all of them. Raises
    :class:`planner.errors.InputError` where a file or a command cannot be read, or they do not go together.
    """
    unused = Counter[str]()
    results = [path for path in files if is_result(path)]
    commands = [_served(command, of, catalog) for command in serve]
    _together(results, commands)
    rows: list[Expressed] = []
    for path in files:
        if path in results:
            by = commands[results.index(path) if len(commands) > 1 else 0]
            found = observations(read_results(path), by.row, path.name, unused)
            rows += _expressed(found, of, catalog, unused, by.settings)
        else:
            rows += _expressed(read(path), of, catalog, unused, None)
    unknown = tuple(dict.fromkeys(flag for one in commands for flag in one.flags.unknown))
    return Material(tuple(rows), unused, tuple(path.name for path in files), unknown)


def _served(command: str, of: Target, catalog: Catalog) -> Served:
    # Without a version that of today is meant, and without a flag the cache that engines take by themselves.
    version = of.version or catalog.engine(of.engine).versions[-1].since
    found = served(command, of.hardware, version, catalog)
    if found.row["engine"] != of.engine:
        problem = f"--serve runs {found.row['engine']}, not the engine {of.engine!r}"
        raise InputError.of(problem, field="--engine", value=of.engine)
    return replace(found, row={"kv_dtype": "bf16", **found.row})


def _together(results: Sequence[Path], commands: Sequence[Served]) -> None:
    """Hold the number of commands against that of the files."""
    if results and not commands:
        problem = f"{results[0].name} does not say how the server was run; add --serve 'vllm serve ...'"
        raise InputError.of(problem, field="--serve", value=results[0].name)
    if commands and not results:
        raise InputError.of("--serve goes with result files; a table says how its rows were served", field="--serve")
    if len(commands) not in {0, 1, len(results)}:
        problem = f"{len(commands)} times --serve for {len(results)} result files; say one for all, or one for each"
        raise InputError.of(problem, field="--serve", value=str(len(commands)))


def _expressed(
    rows: Sequence[Observation], of: Target, catalog: Catalog, unused: Counter[str], settings: Settings | None
) -> Iterator[Expressed]:
    """Express rows with the card to start from; those of other pairs are counted."""
    pair = (of.card.hardware, of.card.engine)
    for row in rows:
        try:
            one = express(row, catalog, {pair: of.card})
        except InexpressibleError as reason:
            unused[str(reason)] += 1
            continue
        found = one.configuration.efficiency
        if (found.hardware, found.engine) == pair:
            yield settings.on(one) if settings else one
        else:
            unused[f"measured with {found.engine} on {found.hardware}"] += 1
