"""What all documents have in common: strictness, names, sources, and how a file becomes one of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from planner.errors import Fault, InputError, shorten
from planner.spec import complaints
from planner.spec.text import Document, Location, dotted, load

ASSUMED = "assumed"
"""The source of a number that nobody published or measured."""
UNKNOWN_SOURCE = "unknown_source"


@dataclass(frozen=True, slots=True)
class SourceMark:
    """Marks a field as a key into the ``sources`` of its card."""


SourceKey = Annotated[str, SourceMark(), Field(min_length=1, examples=[ASSUMED])]
"""Key into the ``sources`` of the card, or ``assumed``."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=80, examples=["orbit"])]
"""Name of a document: lower-case letters, digits, dots and hyphens."""

Month = Annotated[str, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])$", examples=["2023-07"])]
"""A month, so that later ones compare greater."""


class Card(BaseModel):
    """A document, or a part of one: frozen, without unknown keys, without infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the card for editors, without the bounds that pydantic leaves on optional quantities."""
        reference = handler(schema)
        described = handler.resolve_ref_schema(reference)
        for about in described.get("properties", {}).values():
            for option in about.get("anyOf", ()):
                for bound in ("gt", "ge", "lt", "le"):
                    option.pop(bound, None)
        return reference

    @model_validator(mode="after")
    def _sources_exist(self) -> Self:
        """Hold every source of the card's parts against its ``sources``."""
        known = getattr(self, "sources", None)
        if isinstance(known, dict):
            for location, key in _source_keys(self, ()):
                if key not in known and key != ASSUMED:
                    raise PydanticCustomError(UNKNOWN_SOURCE, "{problem}", {"problem": _unknown(location, key, known)})
        return self


class Sourced(Card):
    """A part of a card whose numbers come from one source."""

    source: SourceKey
    """Key into ``sources``, or ``assumed``."""


AnyCard = TypeVar("AnyCard", bound=Card)


@cache
def _source_fields(kind: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of a card that are keys into ``sources``: marked so, or called so."""
    return tuple(
        name
        for name, info in kind.model_fields.items()
        if name.endswith("_source") or any(isinstance(mark, SourceMark) for mark in info.metadata)
    )


def _source_keys(part: object, location: Location) -> Iterator[tuple[Location, str]]:
    """Yield every source that ``part`` and its own parts name, with its place."""
    if isinstance(part, BaseModel):
        kind = type(part)
        for name in _source_fields(kind):
            if (key := getattr(part, name)) is not None:
                yield (*location, name), key
        for name in kind.model_fields:
            yield from _source_keys(getattr(part, name), (*location, name))
    elif isinstance(part, tuple):
        for index, item in enumerate(part):
            yield from _source_keys(item, (*location, index))
    elif isinstance(part, dict):
        for key, item in part.items():
            yield from _source_keys(item, (*location, str(key)))


def _unknown(location: Location, key: str, known: dict[str, str]) -> str:
    near = complaints.did_you_mean(key, [*known, ASSUMED])
    return f"{dotted(location)}: {shorten(key)} is not in sources; {near}"


def read_document(path: Path, kind: type[AnyCard]) -> AnyCard:
    """Return the document in the YAML file ``path``.

    Raises :class:`InputError` with all faults of the file: its line, the field, the value and what would be right.
    """
    return validate(load(path), kind)


def validate(document: Document, kind: type[AnyCard]) -> AnyCard:
    """Return the values of a file as a document of ``kind``. Raises :class:`InputError` with all faults."""
    faults = list(document.faults)
    card = None
    try:
        # Strict JSON, so that neither "64" nor true is taken for a number, while lists and keys stay natural.
        card = kind.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        faults += complaints.explain([d for d in details if d["type"] != UNKNOWN_SOURCE], document, kind)
        faults += _unknown_sources(document, kind)
    if faults or card is None:
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    return card


def _unknown_sources(document: Document, kind: type[Card]) -> list[Fault]:
    """Hold the sources of a document that is otherwise at fault against its ``sources``."""
    known = document.value.get("sources")
    if "sources" not in kind.model_fields or not isinstance(known, dict):
        return []
    names = {name for part in complaints.parts(kind) for name in _source_fields(part)}
    faults = []
    for location, key in _raw_keys(document.value, names, ()):
        if key not in known and key != ASSUMED:
            near = complaints.did_you_mean(key, [*known, ASSUMED])
            shown = shorten(key)
            faults.append(document.fault(location, f"{shown} is not in sources; {near}", shown))
    return faults


def _raw_keys(value: JsonValue, names: set[str], location: Location) -> Iterator[tuple[Location, str]]:
    """Yield the text of every field called one of ``names``."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in names and isinstance(item, str) and item:
                yield (*location, key), item
            yield from _raw_keys(item, names, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _raw_keys(item, names, (*location, index))
