"""JSON Schemas of documents and answers, with the docstring under each field as its description.

pydantic can read those docstrings itself, but does so whenever a class is made, which costs a tenth of a second at
every start; a schema is wanted now and then.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, get_args

from pydantic import BaseModel

JsonSchema = dict[str, Any]
"""A JSON Schema has any shape."""


def json_schema(kind: type[BaseModel], mode: Literal["validation", "serialization"] = "validation") -> JsonSchema:
    """Return the JSON Schema of a document as it is read, or of an answer as it is written."""
    schema = kind.model_json_schema(mode=mode)
    classes = {one.__name__: one for one in _reachable(kind, set())}
    _describe(schema, kind)
    for name, part in schema.get("$defs", {}).items():
        if name in classes:
            _describe(part, classes[name])
    return schema


def _reachable(kind: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """Walk all models that the fields of a model name, itself first."""
    if kind in seen:
        return
    seen.add(kind)
    yield kind
    for field in kind.model_fields.values():
        for one in _models(field.annotation):
            yield from _reachable(one, seen)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _describe(schema: JsonSchema, kind: type[BaseModel]) -> None:
    """Put docstrings of fields into a schema's properties; a description that is there stays."""
    texts = field_docstrings(kind)
    for name, field in kind.model_fields.items():
        key = field.serialization_alias or name
        described = schema.get("properties", {}).get(key)
        if described is not None and name in texts:
            described.setdefault("description", texts[name])


def field_docstrings(kind: type[BaseModel]) -> dict[str, str]:
    """Docstrings of a model's fields, by name, those of its bases included."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if not (issubclass(one, BaseModel) and one is not BaseModel):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
        lines = body.body if isinstance(body, ast.ClassDef) else []
        for field, text in pairwise(lines):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                value = text.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[field.target.id] = inspect.cleandoc(value.value)
    return found
