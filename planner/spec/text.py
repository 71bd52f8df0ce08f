"""YAML text into plain values that remember their lines.

A small part of YAML is read: mappings with text keys, lists, and scalars by the core schema of YAML 1.2 (so that
``22:00``, ``no`` and dates stay text). Anchors, aliases, tags, merge keys and several documents in a file are refused.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import JsonValue

from planner.errors import Fault, InputError, shorten

LARGEST_FILE = 2**20
"""Largest document that is read [B]."""
DEEPEST = 32
"""Most mappings and lists inside each other."""
LARGEST_INTEGER = 10**15
"""Beyond this an integer is taken for a slip of the hand; every integer up to here is exact as a float."""

Location = tuple[str | int, ...]
"""Keys of mappings and indices of lists, from the root."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: dict[str, bool | None] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS = _NULLS | dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_FORBIDDEN_ASCII = re.compile(r"[^\t\n\r\x20-\x7e]")
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
"""As a pattern: its large classes take as long to compile as a card takes to read, and most cards are plain ASCII."""
_PLAIN_KEY = re.compile(r"[\w.%/+-]{1,60}")


@dataclass(frozen=True, slots=True)
class Document:
    """A file as plain values."""

    file: str
    """Path as the user gave it."""
    value: dict[str, JsonValue]
    lines: Mapping[Location, int]
    """Line of each key and list item, counted from 1."""
    faults: tuple[Fault, ...]
    """What is wrong with the YAML itself, as far as the rest could still be read."""
    numbers: Mapping[Location, str]
    """Numbers as they were written, since 0.10 and 0.1 are the same value but not the same version."""
    unread: frozenset[Location]
    """Places whose value is unknown because of such a fault."""

    def line(self, location: Location) -> int | None:
        """Line of the nearest place at or above ``location``."""
        for end in range(len(location), -1, -1):
            if (line := self.lines.get(location[:end])) is not None:
                return line
        return None

    def at(self, location: Location) -> JsonValue:
        """Value at ``location``, or None where there is nothing."""
        value: JsonValue = self.value
        for part in location:
            if isinstance(value, dict) and isinstance(part, str):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def fault(self, location: Location, problem: str, value: str = "") -> Fault:
        """Return a fault at ``location``."""
        return Fault(self.file, self.line(location), dotted(location), value, problem)


def dotted(location: Location) -> str:
    """Return the location as text; keys that are not plain words are quoted.

    >>> dotted(("workloads", 0, "promise", "ttft"))
    'workloads.0.promise.ttft'
    """
    return ".".join(str(part) if _PLAIN_KEY.fullmatch(str(part)) else shorten(str(part), 30) for part in location)


def load(path: Path) -> Document:
    """Read a YAML file. Raises :class:`InputError` where it cannot be read as one mapping."""
    return parse(_text(path), str(path))


def _refuse(file: str, problem: str, line: int | None = None, value: str = "") -> InputError:
    return InputError([Fault(file=file, line=line, field="", value=value, problem=problem)])


def _text(path: Path) -> str:
    """Return the text of a file."""
    file = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise _refuse(file, "there is no such file") from None
    except IsADirectoryError:
        raise _refuse(file, "is a directory; name a file in it, for example scenario.yaml") from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise _refuse(file, f"cannot be read: {reason}") from None
    if len(data) > LARGEST_FILE:
        raise _refuse(file, f"is larger than {LARGEST_FILE} bytes; a document has a few kilobytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shown = f"0x{data[error.start]:02x}"
        raise _refuse(file, f"byte {shown} is not UTF-8; save the file as UTF-8", line, shown) from None
    if match := (_FORBIDDEN_ASCII.search(text) if text.isascii() else re.search(_FORBIDDEN, text)):
        line, shown = text.count("\n", 0, match.start()) + 1, f"U+{ord(match[0]):04X}"
        raise _refuse(file, f"control character {shown} is not allowed; remove it", line, shown)
    return text


def parse(text: str, file: str) -> Document:
    """Read YAML text; ``file`` names it in faults. Raises :class:`InputError` where it is not one mapping."""
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.feed(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise InputError([*builder.faults, *_refuse(file, _not_yaml(error, text, line), line).faults]) from None
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        raise _refuse(file, f"is not YAML: {shorten(str(error), 120)}") from None
    root = builder.root
    if root is None and not builder.faults:
        raise _refuse(file, "is empty; it must hold a mapping, for example name: orbit")
    if not isinstance(root, dict):
        if builder.faults:
            raise InputError(builder.faults)
        what = "a list" if isinstance(root, list) else shorten(root)
        raise _refuse(file, f"holds {what}, not a mapping, for example name: orbit", 1)
    return Document(file, root, builder.lines, tuple(builder.faults), builder.numbers, frozenset(builder.unread))


def _not_yaml(error: yaml.MarkedYAMLError, text: str, line: int | None) -> str:
    """Explain a syntax error."""
    problem = " ".join(part for part in (error.context, error.problem) if part)
    content = (text.splitlines() or [""])[min(line or 1, text.count("\n") + 1) - 1 : line]
    if any("\t" in row for row in content):
        return f"is not YAML: {problem}; indent with spaces, not with tabs"
    if "mapping values are not allowed" in problem:
        return f"is not YAML: {problem}; indent keys alike, and quote text that holds ': '"
    return f"is not YAML: {problem}; check brackets, quotes and indentation"


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is being read."""

    location: Location
    items: dict[str, JsonValue] | list[JsonValue]
    key: str | None = None
    repeated: bool = False
    """Whether the pending key occurred before, so that its value is put aside."""


@dataclass(slots=True)
class _Builder:
    """Builds values from the events of the YAML parser, without recursion."""

    file: str
    root: JsonValue = None
    lines: dict[Location, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    numbers: dict[Location, str] = field(default_factory=dict)
    unread: set[Location] = field(default_factory=set)
    stack: list[_Frame] = field(default_factory=list)
    documents: int = 0

    def feed(self, event: yaml.Event) -> None:
        """Take one event."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.stack.pop()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._fatal(event, "a second document starts; keep one document in a file and remove '---'")

    def _line(self, event: yaml.Event) -> int:
        return int(event.start_mark.line) + 1 if event.start_mark else 0

    def _fatal(self, event: yaml.Event, problem: str) -> InputError:
        location = self._location() if self.stack else ()
        return InputError([*self.faults, Fault(self.file, self._line(event), dotted(location), "", problem)])

    def _note(self, event: yaml.Event, location: Location, problem: str, value: str = "") -> None:
        self.faults.append(Fault(self.file, self._line(event), dotted(location), value, problem))

    def _location(self) -> Location:
        """Where the next value belongs."""
        frame = self.stack[-1]
        if isinstance(frame.items, list):
            return (*frame.location, len(frame.items))
        return frame.location if frame.key is None else (*frame.location, frame.key)

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].items, dict) and self.stack[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text: str = event.value
        if event.anchor is not None or event.tag is not None:
            self._decorated(event)
        if self._awaits_key():
            self._key(event, text)
            return
        value = text if event.style or event.tag is not None else self._plain(event, text)
        location = self._place(event, value)
        if isinstance(value, int | float):
            self.numbers.setdefault(location, text)

    def _plain(self, event: yaml.ScalarEvent, text: str) -> JsonValue:
        """Return the value of an unquoted scalar."""
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            number = int(text) if len(text) < 20 else LARGEST_INTEGER + 1  # noqa: PLR2004 - longer is too large
            if abs(number) <= LARGEST_INTEGER:
                return number
            location = self._location() if self.stack else ()
            self._note(event, location, f"{shorten(text)} is too large to be meant, for example 1000000", shorten(text))
            self.unread.add(location)
            return 0
        if _FLOAT.fullmatch(text):
            return float(text)
        if _INFINITE.fullmatch(text):
            return float(text.replace(".", ""))
        return text

    def _decorated(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        """Refuse anchors and tags; the value itself is read on."""
        location = self._location() if self.stack else ()
        if event.anchor is not None:
            shown = shorten(f"&{event.anchor}", 30)
            self._note(event, location, f"anchors such as {shown} are not read; write the value out", shown)
        if event.tag is not None:
            shown = shorten(event.tag, 30)
            self._note(event, location, f"tags such as {shown} are not read; remove it, for example name: orbit", shown)

    def _key(self, event: yaml.ScalarEvent, text: str) -> None:
        """Take the key of the next value."""
        frame = self.stack[-1]
        location = self._same_number(event, (*frame.location, text), text)
        if text == "<<":
            self._note(event, location, "merge keys are not read; write the values out")
            self.unread.add(location)
        frame.key, frame.repeated = text, location in self.lines
        if frame.repeated:
            problem = f"{shorten(text)} occurs twice, first in line {self.lines[location]}; remove one"
            self._note(event, location, problem, shorten(text))
        else:
            self.lines[location] = self._line(event)

    def _same_number(self, event: yaml.ScalarEvent, location: Location, text: str) -> Location:
        """Return where a key is, or an earlier one of the same mapping that is the same number in other digits."""
        if not event.style and _FLOAT.fullmatch(text) and location not in self.lines:
            for other in self.stack[-1].items:
                if isinstance(other, str) and _FLOAT.fullmatch(other) and float(other) == float(text):
                    return (*location[:-1], other)
        return location

    def _place(self, event: yaml.Event, value: JsonValue) -> Location:
        """Put a value where it belongs, and return where that is."""
        if not self.stack:
            self.root = value
            self.lines[()] = self._line(event)
            return ()
        frame, location = self.stack[-1], self._location()
        if isinstance(frame.items, list):
            self.lines.setdefault(location, self._line(event))
            frame.items.append(value)
        elif frame.key is not None:
            # A repeated key keeps its first value; "<<" is reported already and belongs to no field.
            if not frame.repeated and frame.key != "<<":
                frame.items[frame.key] = value
            frame.key = None
        return location

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        if event.anchor is not None or event.tag is not None:
            self._decorated(event)
        if self._awaits_key():
            raise self._fatal(event, "a key must be text, for example name: orbit; quote text that starts with [ or {")
        if len(self.stack) >= DEEPEST:
            raise self._fatal(event, f"more than {DEEPEST} mappings and lists inside each other")
        items: dict[str, JsonValue] | list[JsonValue]
        items = {} if isinstance(event, yaml.MappingStartEvent) else []
        location = self._place(event, items)
        self.stack.append(_Frame(location, items))

    def _alias(self, event: yaml.AliasEvent) -> None:
        if self._awaits_key():
            raise self._fatal(event, "a key must be text, for example name: orbit; aliases are not read")
        location = self._location() if self.stack else ()
        shown = shorten(f"*{event.anchor}", 30)
        self._note(event, location, f"aliases such as {shown} are not read; write the value out", shown)
        self.unread.add(location)
        self._place(event, None)
