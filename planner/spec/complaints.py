"""What pydantic found wrong, in the words of the documents: place, value, and what would be right."""

import types
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from planner.errors import Fault, shorten
from planner.spec.misfit import MISFIT
from planner.spec.text import Document, Location
from planner.units import Unit, format_quantity

_WORDS = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_type": "text (quote what looks like a number)",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "int_parsing": "a whole number",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_LENGTHS = {
    "too_short": ("min_length", "at least"),
    "too_long": ("max_length", "at most"),
    "string_too_short": ("min_length", "at least"),
    "string_too_long": ("max_length", "at most"),
}
_PATTERNS = {
    r"^[a-z0-9][a-z0-9.-]*$": "made of lower-case letters, digits, dots and dashes",
    r"^\d+(\.\d+)*$": "a version made of numbers and dots",
    r"^\d{4}(-\d{2}(-\d{2})?)?$": "a year, month or day",
}
"""Words for the patterns that documents use."""
_LONGEST_EXAMPLE = 120
"""Characters of an example of a mapping; a longer one only names its keys."""
_MOST_KNOWN = 12
"""Names that a message lists at most."""


def did_you_mean(name: str, known: Iterable[str], others: Iterable[str] = ()) -> str:
    """Return a hint at the nearest of the known names and their ``others`` spellings, or at all of the known names.

    >>> did_you_mean("tpto", ["ttft", "tpot"])
    "did you mean 'tpot'?"
    >>> did_you_mean("x", ["ttft", "tpot"])
    'known are ttft, tpot'
    """
    names = list(dict.fromkeys(known))
    lowered = {item.lower(): item for item in reversed([*names, *others])}
    if near := get_close_matches(name.lower()[:80], lowered, n=1, cutoff=0.6):
        return f"did you mean {lowered[near[0]]!r}?"
    if not names:
        return "none are known"
    more = f" and {len(names) - _MOST_KNOWN} more" if len(names) > _MOST_KNOWN else ""
    return f"known are {', '.join(names[:_MOST_KNOWN])}{more}"


def explain(errors: Sequence[ErrorDetails], document: Document, kind: type[BaseModel]) -> list[Fault]:
    """Return a fault for each error of pydantic, apart from those that follow from a fault of the YAML itself."""
    faults: dict[Fault, None] = {}
    for error in _one_of_each_choice(errors, document):
        location = _place(error, document)
        if not any(location[: len(place)] == place for place in document.unread):
            value = document.at(location)
            if _is_consequence(error, value):
                continue
            shown = "" if error["type"] == "missing" else _shown(value, document.numbers.get(location))
            if _is_key(error):
                shown = shorten(str(location[-1])).strip("'")
            faults[document.fault(location, _problem(error, location, shown, kind), shown)] = None
    return list(faults)


def _one_of_each_choice(errors: Sequence[ErrorDetails], document: Document) -> list[ErrorDetails]:
    """Return one error where a value fits none of several types: of the type that it has, or else of the first."""
    kept: list[ErrorDetails] = []
    best: dict[Location, int] = {}
    for error in errors:
        location = _place(error, document)
        if error["type"] == "missing" or not _is_branch(error, location):
            kept.append(error)
        elif location not in best:
            best[location] = len(kept)
            kept.append(error)
        elif kept[best[location]]["type"].endswith("_type") and not error["type"].endswith("_type"):
            kept[best[location]] = error
    return kept


def _is_branch(error: ErrorDetails, location: Location) -> bool:
    """Tell whether an error is of one of several plain types: pydantic names the type behind the place."""
    return len(error["loc"]) == len(location) + 1 and error["loc"][-1] in ("float", "int", "str", "bool")


def _is_key(error: ErrorDetails) -> bool:
    """Tell whether it is the key of a mapping that is at fault: pydantic says so behind the place."""
    return error["loc"][-1:] == ("[key]",)


def _keys(mapping: object) -> Iterator[object]:
    """Yield what the schema allows as keys of a mapping."""
    if get_origin(mapping) is dict:
        yield from _flat(get_args(mapping)[0])


def _is_consequence(error: ErrorDetails, value: object) -> bool:
    """Tell whether a list is found too short only because pydantic counts no items that are at fault themselves."""
    least = error.get("ctx", {}).get("min_length", 0)
    return error["type"] == "too_short" and isinstance(value, list | dict) and len(value) >= least


def _place(error: ErrorDetails, document: Document) -> Location:
    """Return where an error is in the document: pydantic also names the branches of unions, which are no keys."""
    location: Location = ()
    for part in error["loc"]:
        for candidate in (part, str(part)):
            if (*location, candidate) in document.lines:
                location = (*location, candidate)
                break
    if error["type"] == "missing":
        location = (*location, error["loc"][-1])
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        location = (*location, str(error.get("ctx", {}).get("discriminator", "kind")).strip("'"))
    return location


def _shown(value: object, number: str | None) -> str:
    """Return a value for a message; a number as it was written."""
    if number is not None:
        return shorten(number).strip("'")
    if value is None:
        return "an empty value"
    if value in ({}, []):
        return "an empty mapping" if isinstance(value, dict) else "an empty list"
    if isinstance(value, dict):
        return f"a mapping of {shorten(', '.join(value), 40)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return str(value).lower() if isinstance(value, bool) else shorten(value)


def _problem(error: ErrorDetails, location: Location, shown: str, kind: type[BaseModel]) -> str:
    """Return what is wrong and what would be right."""
    tag, context = error["type"], error.get("ctx", {})
    if tag in ("value_error", "assertion_error"):
        return str(context.get("error", error["msg"]))
    if tag == MISFIT:
        return error["msg"]
    if tag == "extra_forbidden":
        owners = _models(_options(kind, location[:-1]))
        names = [name for owner in owners for name in owner.model_fields]
        return f"{shorten(str(location[-1]))} is not a known key; {did_you_mean(str(location[-1]), names)}"
    options = _options(kind, location)
    if _is_key(error):
        options = [key for mapping in _options(kind, location[:-1]) for key in _keys(_bare(mapping))]
        return f"the key {shown} {_rule(error, '')}, for example {_example(options)}"
    example = repr(shown) if tag == "string_type" and shown[:1].isdigit() else _example(options)
    label = f"{location[-1]}: " if location and isinstance(location[-1], str) else ""
    right = f", for example {label}{example}" if example else ""
    return f"is missing{right}" if tag == "missing" else f"{shown} {_rule(error, _unit(options))}{right}"


def _rule(error: ErrorDetails, unit: str) -> str:
    """Return the rule that a value breaks, as the end of a sentence that begins with the value."""
    tag, context = error["type"], error.get("ctx", {})
    rule = error["msg"].removeprefix("Input should ").removeprefix("be ")
    text = f"must be {rule}" if error["msg"].startswith("Input should be ") else f"is at fault: {error['msg']}"
    if tag in _WORDS:
        text = f"must be {_WORDS[tag]}"
    elif tag in _BOUNDS:
        key, words = _BOUNDS[tag]
        bound = context.get(key, 0)
        text = f"must be {words} {format_quantity(bound, unit) if unit and bound else f'{bound:g}'}"
    elif tag in _LENGTHS:
        key, words = _LENGTHS[tag]
        what = "characters" if tag.startswith("string") else "items"
        text = f"must have {words} {context.get(key)} {what}"
    elif tag == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        text = f"is not {_PATTERNS.get(pattern, f'of the form {pattern}')}"
    elif tag == "literal_error":
        text = f"is not one of {context.get('expected')}"
    elif tag == "union_tag_invalid":
        text = f"is not one of {context.get('expected_tags')}"
    return text


def _flat(annotation: object) -> Iterator[object]:
    """Yield the alternatives of an annotation; what is annotated keeps its metadata."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        for option in get_args(annotation):
            yield from _flat(option)
    elif origin is Annotated and get_origin(get_args(annotation)[0]) in (Union, types.UnionType, Annotated):
        yield from _flat(get_args(annotation)[0])
    elif annotation is not types.NoneType:
        yield annotation


def _bare(annotation: object) -> object:
    """Return an annotation without its metadata."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _options(kind: type[BaseModel], location: Location) -> list[object]:
    """Return what the schema allows at ``location``."""
    options: list[object] = [kind]
    for part in location:
        options = [below for option in options for below in _below(_bare(option), part)]
    return options


def _below(option: object, part: str | int) -> Iterator[object]:
    """Yield what the schema allows under one key or index."""
    if isinstance(option, type) and issubclass(option, BaseModel):
        if info := option.model_fields.get(str(part)):
            yield from _of_field(info)
    elif (arguments := get_args(option)) and get_origin(option) in (tuple, list, dict):
        yield from _flat(arguments[1] if get_origin(option) is dict else arguments[0])


def _of_field(info: FieldInfo) -> Iterator[object]:
    for option in _flat(info.annotation):
        extra = (*info.metadata, info)
        yield Annotated[option, *extra]


def _models(options: Iterable[object]) -> list[type[BaseModel]]:
    bare = [_bare(option) for option in options]
    return [option for option in bare if isinstance(option, type) and issubclass(option, BaseModel)]


def _metadata(option: object) -> tuple[object, ...]:
    """Return the metadata of an annotation."""
    return get_args(option)[1:] if get_origin(option) is Annotated else ()


def _unit(options: Iterable[object]) -> str:
    """Return the SI unit of what the schema allows, or nothing where it has none."""
    return next((mark.symbol for option in options for mark in _metadata(option) if isinstance(mark, Unit)), "")


def _example(options: Sequence[object]) -> str:
    """Return a value that the schema allows, as it is written in YAML."""
    for option in options:
        metadata = _metadata(option)
        for mark in reversed(metadata):
            if isinstance(mark, FieldInfo) and mark.examples:
                return _written(mark.examples[0])
        for mark in metadata:
            if isinstance(mark, Unit):
                return mark.example
        if text := _plain_example(_bare(option), _bounds(metadata)):
            return text
    return ""


def _written(value: object) -> str:
    """Return an example as it is written in YAML."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_written(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return f'"{value}"' if ":" in str(value) else str(value)


def _bounds(metadata: Iterable[object]) -> dict[str, float]:
    """Return the bounds of a number, or of a length, by their names in a schema; fields keep theirs in metadata."""
    found: dict[str, float] = {}
    for mark in metadata:
        for part in (mark, *(mark.metadata if isinstance(mark, FieldInfo) else ())):
            for name in ("ge", "gt", "le", "lt", "min_length"):
                if isinstance(bound := getattr(part, name, None), int | float):
                    found[name] = bound
    return found


def _inside(number: float, bounds: dict[str, float]) -> float:
    """Return a number within bounds: the given one where it fits."""
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    if low is not None and (number < low or number == bounds.get("gt")):
        return low if "ge" in bounds else low + 1 if high is None else (low + high) / 2
    if high is not None and (number > high or number == bounds.get("lt")):
        return high if "le" in bounds else high - 1 if low is None else (low + high) / 2
    return number


def _plain_example(option: object, bounds: dict[str, float]) -> str:
    """Return an example of a type without metadata."""
    origin, arguments = get_origin(option), get_args(option)
    if origin is Literal:
        return str(arguments[0])
    if origin in (tuple, list):
        return f"[{', '.join([_example(list(_flat(arguments[0])))] * int(bounds.get('min_length', 1)))}]"
    if origin is dict:
        return f"{{{_example(list(_flat(arguments[0])))}: {_example(list(_flat(arguments[1])))}}}"
    if isinstance(option, type) and issubclass(option, BaseModel):
        needed = [name for name, info in option.model_fields.items() if info.is_required()]
        names = needed or list(option.model_fields)[:1]
        whole = ", ".join(f"{name}: {_example(_options(option, (name,)))}" for name in names)
        return f"{{{whole if len(whole) <= _LONGEST_EXAMPLE else ', '.join(f'{name}: ...' for name in names)}}}"
    if option in (int, float):
        return f"{_inside(8 if option is int else 0.5, bounds):g}"
    return {bool: "true", str: "text"}.get(option, "") if isinstance(option, type) else ""


def parts(kind: type[BaseModel]) -> set[type[BaseModel]]:
    """Return ``kind`` and every model that it is made of."""
    found: set[type[BaseModel]] = set()
    queue: list[object] = [kind]
    while queue:
        option = queue.pop()
        if isinstance(option, type) and issubclass(option, BaseModel):
            if option not in found:
                found.add(option)
                queue += [info.annotation for info in option.model_fields.values()]
        else:
            queue += get_args(option)
    return found
