"""The published schemas and their page are what the types say, and answers keep to them."""

import json
import os
from pathlib import Path

import jsonschema
import pytest

from planner.plan.answer import Recommendation, to_json
from planner.plan.explanation import Explanation
from planner.plan.predicted import Part
from planner.report.reference import reference, schema

FOLDER = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parents[2])) / "docs/reference"


@pytest.mark.parametrize("name", sorted(reference()))
def test_the_reference_is_what_the_types_say(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == reference()[name], "run 'python -m planner.report.reference docs/reference' to write it anew"


@pytest.mark.parametrize(
    ("fixture", "command"), [("answer", "recommend"), ("hopeless", "recommend"), ("explanation", "explain")]
)
def test_answers_keep_to_the_published_schema(fixture: str, command: str, request: pytest.FixtureRequest) -> None:
    answer = request.getfixturevalue(fixture)
    assert isinstance(answer, Part)
    published = json.loads((FOLDER / f"{command}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.validate(json.loads(to_json(answer)), published)


def test_the_schema_refuses_an_unknown_key_and_a_missing_one(answer: Recommendation) -> None:
    document = json.loads(to_json(answer))
    with pytest.raises(jsonschema.ValidationError, match="'seconds_taken' was unexpected"):
        jsonschema.validate({**document, "seconds_taken": 0.4}, schema("recommend"))
    del document["workloads"][0]["cost"]
    with pytest.raises(jsonschema.ValidationError, match="'cost' is a required property"):
        jsonschema.validate(document, schema("recommend"))


def test_an_answer_survives_its_own_json(answer: Recommendation, explanation: Explanation) -> None:
    for item in (answer, explanation):
        text = to_json(item)
        again = type(item).model_validate_json(text)
        assert to_json(again) == text
