"""The reference of the JSON answers, written from their types: JSON Schemas, and a page for people.

``python -m planner.report.reference docs/reference`` writes it anew; a test compares.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, JsonValue
from tabulate import tabulate

from planner.check.accuracy import Accuracy
from planner.check.calibration import CalibrationFound
from planner.check.simulated import Simulation
from planner.check.single import Prediction
from planner.plan.answer import Recommendation
from planner.plan.explanation import Explanation
from planner.spec.schema import json_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANSWERS: dict[str, type[BaseModel]] = {
    "recommend": Recommendation,
    "explain": Explanation,
    "predict": Prediction,
    "accuracy": Accuracy,
    "calibrate": CalibrationFound,
    "simulate": Simulation,
}
"""Types of the answers, by command."""
INTRODUCTION = """\
# JSON answers

Written from the types themselves by `just docs`; do not edit.

With `--format json`, `recommend`, `explain`, `predict`, `accuracy`, `calibrate` and `simulate` answer in the JSON
described here; the files `*.schema.json` beside this page say the same to a validator. `schema_version` is "1": inside
a version no key is renamed and none is taken away.

- Figures are in SI units: seconds, bytes, bytes per second, requests per second, watts. Money is in US dollars.
  Shares are between 0 and 1, percentiles between 0 and 100.
- Floats have six significant digits. There is no NaN and no infinity: a figure without a value is null, and the tables
  name the fields that may be null.
- There are no timings and no dates: the same scenario gives the same bytes.
- All keys are always there, except those marked *left out*, which are left out where they have no value.
"""


class Row(NamedTuple):
    """One field for the page."""

    key: str
    kind: str
    meaning: str


def schema(command: str) -> dict[str, JsonValue]:
    """Return the JSON Schema of a command's answer.

    >>> schema("recommend")["title"], schema("explain")["title"]
    ('Recommendation', 'Explanation')
    """
    made = json_schema(ANSWERS[command], "serialization")
    return {"$schema": DIALECT, **made}


def reference() -> dict[str, str]:
    """Return the text of each generated file, by its name in ``docs/reference``."""
    texts = {f"{command}.schema.json": json.dumps(schema(command), indent=2) + "\n" for command in ANSWERS}
    return texts | {"json.md": _page()}


def _page() -> str:
    parts = [INTRODUCTION]
    seen: set[str] = set()
    for command in ANSWERS:
        whole = schema(command)
        kinds = {str(whole["title"]): whole, **_mapping(whole.get("$defs", {}))}
        for name in _in_reading_order(whole, kinds):
            if name not in seen:
                seen.add(name)
                level = "##" if name == whole["title"] else "###"
                title = f"`{command}`: {name}" if name == whole["title"] else name
                parts.append(f"{level} {title}\n\n{_object(_mapping(kinds[name]))}")
    return "\n".join(parts)


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _in_reading_order(whole: dict[str, JsonValue], kinds: dict[str, JsonValue]) -> list[str]:
    """Names of the objects, each before its parts."""
    order: list[str] = []
    waiting = [str(whole["title"])]
    while waiting:
        name = waiting.pop(0)
        if name in order or "properties" not in _mapping(kinds[name]):
            continue
        order.append(name)
        text = json.dumps(_mapping(kinds[name])["properties"])
        inner = [other for other in kinds if f'"#/$defs/{other}"' in text]
        waiting = sorted(inner, key=lambda other: text.index(f'"#/$defs/{other}"')) + waiting
    return order


def _object(made: dict[str, JsonValue]) -> str:
    required = _listed(made.get("required", []))
    rows = []
    for key, value in _mapping(made["properties"]).items():
        field = _mapping(value)
        meaning = " ".join(str(field.get("description", "")).replace("``", "`").split())
        rows.append(Row(f"`{key}`" if key in required else f"`{key}`, *left out*", _kind(field), meaning))
    about = " ".join(str(made.get("description", "")).replace("``", "`").split())
    return f"{about}\n\n{tabulate(rows, ('Key', 'Type', 'Meaning'), tablefmt='pipe', disable_numparse=True)}\n"


def _kind(field: dict[str, JsonValue]) -> str:
    """Name the type of a field in words."""
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "const" in field or "enum" in field:
        return ", ".join(f"`{option}`" for option in _listed(field.get("enum", [field.get("const")])))
    if "anyOf" in field:
        return " or ".join(_kinds(field["anyOf"]))
    if field.get("type") == "array":
        fixed = _kinds(field.get("prefixItems", []))
        return f"[{', '.join(fixed)}]" if fixed else f"list of {_kind(_mapping(field.get('items', {})))}"
    inner = _mapping(field.get("additionalProperties", {}))
    return f"object of {_kind(inner)}" if inner.get("type") else str(field.get("type", "any"))


def _kinds(fields: JsonValue) -> list[str]:
    return [_kind(_mapping(field)) for field in _listed(fields)]


def main(folder: Path) -> None:
    """Write all generated files into a folder."""
    for name, text in reference().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
