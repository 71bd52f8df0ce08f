"""Documents from YAML: every fault at once, each with file, line, field, value and what would be right."""

import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from planner.errors import Fault, InputError
from planner.spec.card import Card, Name, Sourced, SourceKey, read_document
from planner.spec.scenario import Scenario
from planner.units import Bytes, Seconds

SCENARIO = """\
name: small
title: A small cluster  # with a comment
notes: >-
  Two nodes
  and one model.
cluster:
  inventory:
    - {hardware: h100-sxm, nodes: 2, price: 2.5 USD/h}
engine: {name: vllm, version: "0.11.0"}
workloads:
  - name: chat
    model: llama-3.1-8b
    traffic: {rate: 12 req/s, peak_to_mean: 1.5}
    lengths:
      input: {quantiles: {0: 10, 50: 900, 99.5: 7000, 100: 8000}}
      output: {constant: 100}
    promise: {ttft: 500 ms, tpot: 50 ms, share: 0.95}
  - name: night
    model: llama-3.1-8b
    batch: {documents: 1_000_000}
    lengths: {input: {p50: 1000, p90: 2000}, output: {constant: 10}}
    promise: {deadline: 8 h, start: 22:00}
"""


class Square(Sourced):
    kind: Literal["square"]
    side: Bytes = Field(gt=0)


class Circle(Sourced):
    kind: Literal["circle"]
    radius: int = Field(gt=0)


class Drawing(Card):
    name: Name
    sources: dict[str, str] = Field(min_length=1)
    paper: SourceKey = "assumed"
    ink_source: str | None = None
    shapes: tuple[Annotated[Square | Circle, Field(discriminator="kind")], ...] = ()
    times: dict[str, Seconds] = Field(default_factory=dict)
    bold: bool = False


def faults(folder: Path, text: str | bytes, kind: type[Card] = Drawing) -> list[str]:
    """Return the faults of a document, one line each, without the name of the folder."""
    path = folder / "card.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        read_document(path, kind)
    return str(caught.value).replace(f"{folder}{os.sep}", "").splitlines()


def test_a_document_is_read(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8-sig")
    scenario = read_document(path, Scenario)
    chat, night = scenario.workloads
    assert scenario.notes == "Two nodes and one model."
    assert chat.promise.ttft == 0.5
    assert chat.lengths.input.quantiles == {0: 10, 50: 900, 99.5: 7000, 100: 8000}
    assert night.promise.start == 79200  # YAML 1.1 would have read 1320
    assert night.batch is not None
    assert night.batch.documents == 1_000_000
    assert scenario.cluster.inventory[0].price == 2.5


def test_a_dumped_document_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    scenario = read_document(path, Scenario)
    path.write_text(scenario.model_dump_json())
    assert read_document(path, Scenario) == scenario


def test_all_faults_are_told_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = (
        SCENARIO.replace("name: small", "name: SM")
        .replace("nodes: 2", "nodes: true")
        .replace('"0.11.0"', "0.10")
        .replace("rate: 12 req/s", "rate: 12")
        .replace("ttft: 500 ms", "ttft: 500")
        .replace("share: 0.95", "share: 1.5, shrae: 1")
        .replace("documents:", "docments:")
    )
    assert faults(tmp_path, text, Scenario) == [
        "card.yaml:1: name: 'SM' is not made of lower-case letters, digits, dots and dashes, for example name: orbit",
        "card.yaml:8: cluster.inventory.0.nodes: true must be a whole number, for example nodes: 8",
        "card.yaml:9: engine.version: 0.10 must be text (quote what looks like a number), for example version: '0.10'",
        "card.yaml:13: workloads.0.traffic.rate: 12 has no unit; write it as text, for example '12 req/s'",
        "card.yaml:17: workloads.0.promise.ttft: 500 has no unit; write it as text, for example '500 ms'",
        "card.yaml:17: workloads.0.promise.share: 1.5 must be at most 1, for example share: 0.95",
        "card.yaml:17: workloads.0.promise.shrae: 'shrae' is not a known key; did you mean 'share'?",
        "card.yaml:20: workloads.1.batch.documents: is missing, for example documents: 1000000",
        "card.yaml:20: workloads.1.batch.docments: 'docments' is not a known key; did you mean 'documents'?",
    ]


def test_a_fault_holds_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "card.yaml"
    path.write_text("name: a\nsources: {x: y}\ntimes: {first: 500}\n")
    with pytest.raises(InputError) as caught:
        read_document(path, Drawing)
    problem = "500 has no unit; write it as text, for example '500 ms'"
    assert caught.value.faults == (Fault(str(path), 3, "times.first", "500", problem),)
    assert caught.value.exit_status == 2


HEAD = "name: a\nsources: {x: y}\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("shapes: [{kind: square, side: -1 B, source: x}]", 3, "shapes.0.side: '-1 B' must be more than 0"),
        ("shapes: [{kind: square, side: 0 B, source: x}]", 3, "for example side: 80 GiB"),
        ("shapes: [{kind: cirle, radius: 1, source: x}]", 3, "shapes.0.kind: 'cirle' is not one of"),
        ("shapes: [{radius: 1, source: x}]", 3, "shapes.0.kind:"),
        ("shapes: [{kind: circle, radius: 1.5, source: x}]", 3, "shapes.0.radius: 1.5 must be a whole number"),
        ('shapes: [{kind: circle, radius: "1", source: x}]', 3, "shapes.0.radius: '1' must be a whole number"),
        ("shapes: [{kind: circle, raduis: 1, source: x}]", 3, "did you mean 'radius'?"),
        ("shapes:\n  - 3", 4, "shapes.0:"),
        ("shapes: {}", 3, "shapes: an empty mapping must be a list, for example shapes: ["),
        ("shapes: 3", 3, "shapes: 3 must be a list"),
        ("times: [1]", 3, "times: a list of 1 must be a mapping, for example times: {text: 200 ms}"),
        ("bold: yes", 3, "bold: 'yes' must be true or false, for example bold: true"),
        ("bold: 1", 3, "bold: 1 must be true or false"),
        ("bold:", 3, "bold: an empty value must be true or false"),
        ("times: {first: .nan}", 3, "times.first: nan has no unit"),
        ("times: {first: .inf}", 3, "times.first: inf has no unit"),
        ("times: {first: 1e999}", 3, "times.first: inf has no unit"),
        ("times: {first: 99999999999999999999}", 3, "is too large to be meant"),
        ("times: {first: 5 S}", 3, "times.first: '5 S' is not in s: did you mean 's'?"),
        ('times:\n  "a\\nb": 5', 4, "times.'a\\nb': 5 has no unit"),
        ("paper: y", 3, "paper: 'y' is not in sources; "),
        ("ink_source: xx", 3, "ink_source: 'xx' is not in sources; did you mean 'x'?"),
        (
            "shapes:\n- kind: circle\n  radius: 1\n  source: asumed",
            6,
            "shapes.0.source: 'asumed' is not in sources; did",
        ),
        ("name: b", 3, "name: 'name' occurs twice, first in line 1; remove one"),
        ("times: &t {}", 3, "times: anchors such as '&t' are not read; write the value out"),
        ("times: *t", 3, "aliases such as '*t' are not read; write the value out"),
        ("times: !!map {}", 3, "tags such as 'tag:yaml.org,2002:map' are not read"),
        ("times: !!python/object/apply:os.system [ls]", 3, "are not read; remove it"),
        ("<<: {bold: true}", 3, "merge keys are not read; write the values out"),
        ("? [a]\n: 1", 3, "a key must be text, for example name: orbit"),
        ("{a: 1}: 1", 3, "a key must be text, for example name: orbit"),
        ("times:\n\tfirst: 1 s", 4, "indent with spaces, not with tabs"),
        ("bold: true: false", 3, "mapping values are not allowed in this context"),
        ("bold: [true", 4, "is not YAML: "),
        ("---\nname: b", 3, "a second document starts; keep one document in a file"),
        ("times: " + "[" * 50, 3, "more than 32 mappings and lists inside each other"),
        ("times: " + "{a: " * 50, 3, "more than 32 mappings and lists inside each other"),
        ('bold: "\\ud800"', 3, "is not YAML: "),
    ],
)
def test_each_kind_of_fault_names_line_field_value_and_what_would_be_right(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    lines = faults(tmp_path, HEAD + text)
    matching = [found for found in lines if says in found]
    assert matching, lines
    assert matching[0].startswith(f"card.yaml:{line}: ")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "card.yaml: is empty; it must hold a mapping, for example name: orbit"),
        (b"# nothing\n", "card.yaml: is empty; it must hold a mapping, for example name: orbit"),
        (b"[1, 2]", "card.yaml:1: holds a list, not a mapping, for example name: orbit"),
        (b"text", "card.yaml:1: holds 'text', not a mapping, for example name: orbit"),
        (b"name: a\ntitle: \xff", "card.yaml:2: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("name: a".encode("utf-16"), "card.yaml:1: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"name: a\nb: \x00", "card.yaml:2: control character U+0000 is not allowed; remove it"),
        (b"a" * (2**20 + 1), "card.yaml: is larger than 1048576 bytes; a document has a few kilobytes"),
    ],
)
def test_what_is_no_document_is_one_clear_line(tmp_path: Path, content: bytes, says: str) -> None:
    assert faults(tmp_path, content) == [says]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.yaml", "there is no such file"),
        (".", "is a directory; name a file in it"),
        ("card.yaml/below.yaml", "cannot be read: Not a directory"),
        ("x" * 999, "cannot be read: File name too long"),
        ("a\0b", "cannot be read: embedded null byte"),
    ],
)
def test_what_is_no_file_is_one_clear_line(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "card.yaml").write_text(HEAD)
    with pytest.raises(InputError) as caught:
        read_document(tmp_path / name, Drawing)
    assert len(caught.value.faults) == 1
    assert says in str(caught.value)


def test_other_faults_are_told_beside_those_of_sources_and_of_yaml(tmp_path: Path) -> None:
    text = "name: A\nname: b\npaper: y\nsources: {x: y}\nbold: *b\ntimes: {first: 3}\n"
    fields = [line.split(": ")[1] for line in faults(tmp_path, text)]
    assert fields == ["name", "name", "paper", "bold", "times.first"]


def test_long_values_are_cut(tmp_path: Path) -> None:
    lines = faults(tmp_path, f"{HEAD}bold: {'long ' * 5000}\n{'k' * 1000}: 1\ntimes: {{first: {'1' * 5000}}}\n")
    assert len(lines) == 3
    assert max(map(len, lines)) < 250


def test_a_list_is_not_called_too_short_because_of_a_fault_in_its_items(tmp_path: Path) -> None:
    lines = faults(tmp_path, SCENARIO.replace("nodes: 2", "nodes: 0"), Scenario)
    assert lines == ["card.yaml:8: cluster.inventory.0.nodes: 0 must be more than 0, for example nodes: 8"]


def test_sources_are_held_against_the_card_without_a_file_too() -> None:
    shape = {"kind": "circle", "radius": 1, "source": "x"}
    good = Drawing.model_validate({"name": "a", "sources": {"x": "y"}, "paper": "x", "shapes": [shape]})
    assert good.shapes[0].source == "x"
    with pytest.raises(ValidationError, match=r"shapes.0.source: 'x' is not in sources; known are z, assumed"):
        Drawing.model_validate({"name": "a", "sources": {"z": "y"}, "shapes": [shape]})


def test_cards_are_frozen() -> None:
    drawing = Drawing.model_validate({"name": "a", "sources": {"x": "y"}})
    with pytest.raises(ValidationError, match="frozen"):
        drawing.bold = True  # type: ignore[misc]  # what the test is about


SYNTAX = "- : { } [ ] | > ? # \" ' &a *a !!int <<: --- ... %YAML null true .nan -.inf 1e999 0x1F 22:00"
FRAGMENTS = st.sampled_from([*"\n\t\0\ufeff ", *SYNTAX.split()])
CHANGES = st.lists(
    st.tuples(st.integers(0, len(SCENARIO)), st.integers(0, 12), FRAGMENTS | st.text(max_size=4)),
    min_size=1,
    max_size=4,
)


def only_input_errors(path: Path, content: bytes) -> None:
    """Read bytes as a scenario: it is one, or there are faults, of one line each."""
    path.write_bytes(content)
    try:
        read_document(path, Scenario)
        lines = ["sound"]
    except InputError as error:
        lines = [str(fault) for fault in error.faults]
    assert lines
    assert all(len(line.splitlines()) == 1 and len(line) < 600 for line in lines), lines


FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@FUZZ
@given(CHANGES)
def test_a_mutated_document_is_sound_or_at_fault(tmp_path: Path, changes: list[tuple[int, int, str]]) -> None:
    text = SCENARIO
    for start, length, put in changes:
        text = text[:start] + put + text[start + length :]
    only_input_errors(tmp_path / "card.yaml", text.encode("utf-8", "replace"))


@FUZZ
@given(st.integers(0, len(SCENARIO)))
def test_a_truncated_document_is_sound_or_at_fault(tmp_path: Path, end: int) -> None:
    only_input_errors(tmp_path / "card.yaml", SCENARIO[:end].encode())


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_sound_or_at_fault(tmp_path: Path, content: bytes) -> None:
    only_input_errors(tmp_path / "card.yaml", content)


VALUES = st.sampled_from(["3", "-1", "0.5", "text", "[]", "{}", "[1, x]", "{a: 1}", "true", "''", "~", "22:00", "5 ms"])
PLACES = [(number, line) for number, line in enumerate(SCENARIO.splitlines()) if ": " in line]


@FUZZ
@given(st.sampled_from(PLACES), VALUES)
def test_a_value_of_another_type_is_sound_or_at_fault(tmp_path: Path, place: tuple[int, str], value: str) -> None:
    lines = SCENARIO.splitlines()
    lines[place[0]] = f"{place[1].split(': ')[0]}: {value}"
    only_input_errors(tmp_path / "card.yaml", "\n".join(lines).encode())
