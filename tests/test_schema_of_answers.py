"""Every shipped scenario's answer is valid by the published schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner.plan.answer import to_json
from planner.plan.changes import changed
from planner.plan.recommend import recommend
from planner.spec.catalog import Case, Catalog, resolve


@pytest.fixture(scope="module")
def schema(root: Path) -> dict[str, Any]:
    text = (root / "docs" / "reference" / "recommend.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


def shipped(name: str) -> Case:
    catalog = Catalog()
    return resolve(catalog.scenario(name), catalog)


@pytest.mark.parametrize("name", Catalog().names("scenario"))
def test_the_answer_of_a_shipped_scenario_is_valid(schema: dict[str, Any], name: str) -> None:
    answer = json.loads(to_json(recommend(shipped(name))))
    jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)
    assert answer["scenario"] == name


@pytest.mark.parametrize(
    ("field", "value"),
    [("promise.ttft", 0.015), ("promise.tpot", 0.0001), ("traffic.rate", 600.0)],
)
def test_an_answer_without_a_plan_is_valid_too(schema: dict[str, Any], field: str, value: float) -> None:
    answer = json.loads(to_json(recommend(changed(shipped("quickstart"), f"workloads.chat.{field}", value))))
    jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)
    assert answer["feasible"] is False
    assert answer["infeasible"]


def test_an_unknown_key_is_not_valid(schema: dict[str, Any]) -> None:
    answer = json.loads(to_json(recommend(shipped("quickstart")))) | {"seconds": 0.2}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)
