"""Where documents are found: the user's own folders first, then what planner ships."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from planner.errors import Fault, InputError, shorten
from planner.spec.card import Card, validate
from planner.spec.complaints import did_you_mean
from planner.spec.efficiency import EfficiencyCard
from planner.spec.engine import EngineCard
from planner.spec.hardware import HardwareCard
from planner.spec.model import ModelCard
from planner.spec.scenario import Scenario
from planner.spec.text import Document, load

Kind = Literal["model", "hardware", "engine", "efficiency", "scenario"]
"""A kind of document."""
KINDS: dict[Kind, type[Card]] = {
    "model": ModelCard,
    "hardware": HardwareCard,
    "engine": EngineCard,
    "efficiency": EfficiencyCard,
    "scenario": Scenario,
}
_FOLDERS: dict[Kind, tuple[str, ...]] = {
    "model": ("models",),
    "hardware": ("hardware",),
    "engine": ("hardware/engines", "engines"),
    "efficiency": ("hardware/efficiency", "efficiency"),
    "scenario": ("scenarios",),
}
_SUFFIXES = frozenset({".yaml", ".yml"})
AnyCard = TypeVar("AnyCard", bound=Card)


def shipped() -> Path:
    """Return the folder of the documents that planner ships: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "data"
    return inside if inside.is_dir() else package.parent


@dataclass(slots=True)
class Catalog:
    """Finds documents by name and reads each of them once.

    A folder holds ``models/``, ``hardware/``, ``hardware/engines/``, ``hardware/efficiency/`` and ``scenarios/``, as
    the shipped one does, or the documents themselves.
    """

    folders: tuple[Path, ...] = ()
    """The user's own folders; what they hold is found before what is shipped."""
    _cards: dict[Path, Card] = field(default_factory=dict, init=False, repr=False)
    _files: dict[Kind, dict[str, Path]] = field(default_factory=dict, init=False, repr=False)
    _documents: dict[Path, Document] = field(default_factory=dict, init=False, repr=False)
    _aliases: dict[Kind, dict[str, str]] = field(default_factory=dict, init=False, repr=False)
    _unread: dict[Kind, list[Fault]] = field(default_factory=dict, init=False, repr=False)

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of all documents of a kind, sorted."""
        return tuple(sorted(self._index(kind)))

    def file(self, kind: Kind, name: str) -> Path:
        """Return the file of a document; a model may go by a repository and an engine by an alias.

        Raises :class:`InputError` where there is none of that name.
        """
        index = self._index(kind)
        if name in index:
            return index[name]
        aliases = self._known_aliases(kind)
        if (meant := aliases.get(name.lower())) is not None:
            return index[meant]
        hint = did_you_mean(name, sorted(index), sorted(aliases))
        problem = f"there is no {_noun(kind)} {shorten(name)}; {hint}"
        fault = Fault(file="", line=None, field="", value=shorten(name), problem=problem)
        # A card that cannot be read may be the one that is meant.
        raise InputError([fault, *self._unread[kind]])

    def model(self, name: str) -> ModelCard:
        """Return the model of this name or repository. Raises :class:`InputError`."""
        return self._read(self.file("model", name), ModelCard)

    def hardware(self, name: str) -> HardwareCard:
        """Return the accelerator of this name. Raises :class:`InputError`."""
        return self._read(self.file("hardware", name), HardwareCard)

    def engine(self, name: str) -> EngineCard:
        """Return the engine of this name or alias. Raises :class:`InputError`."""
        return self._read(self.file("engine", name), EngineCard)

    def efficiency(self, hardware: str, engine: str) -> EfficiencyCard:
        """Return the efficiencies of an engine on an accelerator. Raises :class:`InputError`."""
        return self._read(self.file("efficiency", f"{hardware}--{engine}"), EfficiencyCard)

    def scenario(self, path_or_name: Path | str) -> Scenario:
        """Return the scenario in a file, or of a name. Raises :class:`InputError`."""
        return self._read(self.scenario_file(path_or_name), Scenario, named=False)

    def scenario_file(self, path_or_name: Path | str) -> Path:
        """Return the file of a scenario that is given as a path or by name. Raises :class:`InputError`."""
        text = str(path_or_name)
        if isinstance(path_or_name, Path) or "/" in text or "\\" in text or Path(text).suffix.lower() in _SUFFIXES:
            return Path(path_or_name)
        return self.file("scenario", text)

    def document(self, path: Path) -> Document:
        """Return a file as plain values with their lines. Raises :class:`InputError`."""
        if path not in self._documents:
            self._documents[path] = load(path)
        return self._documents[path]

    def _read(self, path: Path, kind: type[AnyCard], *, named: bool = True) -> AnyCard:
        """Return the document in a file, whose stem must be its name."""
        card = self._cards.get(path)
        if card is None:
            document = self.document(path)
            card = validate(document, kind)
            if named and kind is not EfficiencyCard and (name := _name(card)) != path.stem:
                problem = f"{shorten(name)} is not the name of the file; name it {path.stem!r}, or the file {name}.yaml"
                raise InputError([document.fault(("name",), problem, shorten(name))])
            self._cards[path] = card
        if not isinstance(card, kind):
            problem = f"holds a {type(card).__name__}, not a {kind.__name__}"
            raise InputError.of(problem, file=str(path))
        return card

    def _index(self, kind: Kind) -> dict[str, Path]:
        """Return the files of a kind by stem; the first folder that has a name wins."""
        if kind not in self._files:
            found: dict[str, Path] = {}
            for folder in self.folders:
                if not _is_folder(folder):
                    raise InputError.of("is not a directory of cards, for example --cards cards", file=str(folder))
                mine: dict[str, Path] = {}
                for path in self._own(folder, kind):
                    stem = self._stem(path, kind)
                    if stem in mine:
                        problem = f"is a second {_noun(kind)} {stem!r} beside {mine[stem]}; remove one"
                        raise InputError.of(problem, file=str(path))
                    mine[stem] = path
                found = mine | found
            for path in _listed(shipped() / _FOLDERS[kind][0]):
                found.setdefault(path.stem, path)
            self._files[kind] = found
        return self._files[kind]

    def _own(self, folder: Path, kind: Kind) -> Iterator[Path]:
        """Yield the files of a kind in one of the user's folders."""
        for below in _FOLDERS[kind]:
            yield from _listed(folder / below)
        for path in _listed(folder):
            if self._kind_of(path) == kind:
                yield path

    def _stem(self, path: Path, kind: Kind) -> str:
        """Return the name that a file stands for: its stem, or what an efficiency card says that it is of."""
        if kind != "efficiency":
            return path.stem
        said = self.document(path).value
        parts = [said.get("hardware"), said.get("engine")]
        return "--".join(part for part in parts if isinstance(part, str)) if all(parts) else path.stem

    def _kind_of(self, path: Path) -> Kind | None:
        """Return the kind whose keys a file has, or None where it is some other document, such as budgets."""
        keys = set(self.document(path).value)
        shared = {kind: len(keys & set(card.model_fields)) for kind, card in KINDS.items()}
        best = max(shared, key=lambda kind: shared[kind])
        needed = {name for name, info in KINDS[best].model_fields.items() if info.is_required()}
        return best if 2 * shared[best] > len(keys) and len(keys & needed) > 1 else None

    def _known_aliases(self, kind: Kind) -> dict[str, str]:
        """Return names by their other spellings, in lower case."""
        if kind not in self._aliases:
            aliases: dict[str, str] = {}
            unread: list[Fault] = []
            for name, path in sorted(self._index(kind).items()):
                aliases.setdefault(name.lower(), name)
                try:
                    others = self._spellings(kind, path)
                except InputError as error:
                    unread += error.faults
                    continue
                for other in others:
                    aliases.setdefault(other.lower(), name)
            self._aliases[kind], self._unread[kind] = aliases, unread
        return self._aliases[kind]

    def _spellings(self, kind: Kind, path: Path) -> tuple[str, ...]:
        """Return the other names that a card gives itself."""
        if kind == "model":
            return self._read(path, ModelCard).repositories
        return self._read(path, EngineCard).aliases if kind == "engine" else ()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _listed(folder: Path) -> list[Path]:
    """Return the documents in a folder, sorted; nothing where there is no such folder."""
    if not _is_folder(folder):
        return []
    try:
        found = [path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES and not _is_folder(path)]
    except OSError as error:
        problem = f"cannot be listed: {error.strerror}"
        raise InputError.of(problem, file=str(folder)) from None
    return sorted(found)


def _name(card: Card) -> str:
    """Return the name that a document's file must have."""
    return str(getattr(card, "name", ""))


def _noun(kind: Kind) -> str:
    """Return what a document of a kind is called in a message."""
    return {"hardware": "hardware card", "efficiency": "efficiency card"}.get(kind, kind)
