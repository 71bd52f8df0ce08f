"""Figures of a scenario that nobody can mean: one line each, with its field and an example that is right."""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from planner.errors import InputError
from planner.plan.recommend import recommend
from planner.spec import complaints
from planner.spec.card import read_document
from planner.spec.catalog import Catalog, resolve
from planner.spec.lengths import Lengths, RequestLengths, largest, within
from planner.spec.scenario import Scenario
from planner.workload.stats import bins

TEXT = """\
name: small
cluster:
  inventory:
    - {hardware: h100-sxm, nodes: 2}
  current:
    - {workloads: [chat], layout: {tp: 1}, replicas: 1}
engine: {name: vllm, version: "0.19"}
workloads:
  - name: chat
    model: llama-3.1-8b
    traffic: {rate: 1 req/s}
    lengths: {input: {constant: 4000}, output: {constant: 400}}
    promise: {ttft: 500 ms, tpot: 50 ms}
  - name: night
    model: llama-3.1-8b
    batch: {documents: 1000}
    lengths: {input: {constant: 4000}, output: {constant: 400}}
    promise: {deadline: 8 h, start: "22:00"}
reserve: {nodes: 0}
budgets: [{metric: nodes, max: 2}]
"""


def faults(folder: Path, *changes: tuple[str, str]) -> list[str]:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "small.yaml"
    path.write_text(text)
    catalog = Catalog()
    with pytest.raises(InputError) as caught:
        resolve(catalog.scenario(path), catalog, path)
    return str(caught.value).replace(f"{path}:", "").splitlines()


INPUT = "input: {constant: 4000}"
ADAPTERS = "traffic: {rate: 1 req/s}\n    adapters: {count: 9, rank: 16}"


@pytest.mark.parametrize(
    ("old", "new", "field", "right"),
    [
        (INPUT, "input: {p50: 1.0e-300, p90: 10}", "workloads.0.lengths.input.p50", "p50: 1020"),
        (INPUT, "input: {mean: 0.5, p50: 4}", "workloads.0.lengths.input.mean", "mean: 1020"),
        (INPUT, "input: {p90: 1, p99: 10}", "workloads.0.lengths.input", "{p50: 1020, p90: 2735}"),
        (INPUT, "input: {p90: 1, p99: 1e+9}", "workloads.0.lengths.input", "{0: 10, 50: 900, 100: 8000}"),
        (INPUT, "input: {quantiles: {0: 1e-300, 100: 9}}", "workloads.0.lengths.input.quantiles.0", "0: 900"),
        (INPUT, "input: {quantiles: {0: 0.1, 100: 0.5}}", "workloads.0.lengths.input.quantiles", "{0: 10, 50: 900"),
        (INPUT, "input: {quantiles: {0: 5, 0.0: 6, 100: 9}}", "workloads.0.lengths.input.quantiles.0", "remove one"),
        (INPUT, "input: {p50: 1e+308, p90: 8}", "workloads.0.lengths.input.p50", "p50: 1020"),
        (INPUT, "input: {p50: 10, p90: 100, longest: 50}", "workloads.0.lengths.input.longest", "longest: 200"),
        (INPUT, "input: {constant: 10, longest: 50}", "workloads.0.lengths.input", "{p50: 1020, p90: 2735}"),
        (INPUT, "input: {quantiles: {0: 5, 101: 9}}", "workloads.0.lengths.input.quantiles.101", "for example 50"),
        (INPUT, "input: 3", "workloads.0.lengths.input", "input: {constant: 1024}"),
        (
            "traffic: {rate: 1 req/s}",
            ADAPTERS.replace("{count: 9, rank: 16}", "3"),
            "workloads.0.adapters",
            "rank: 16}",
        ),
        ("[{metric: nodes, max: 2}]", "3", "budgets", "budgets: [{metric: nodes, max: 16}]"),
        ("rate: 1 req/s", "rate: 1e9 req/s", "workloads.0.traffic.rate", "rate: 12 req/s"),
        ("rate: 1 req/s", "rate: 1e-9 req/s", "workloads.0.traffic.rate", "rate: 12 req/s"),
        ("rate: 1 req/s", "rate: 1 req/s, peak_to_mean: 0.5", "workloads.0.traffic.peak_to_mean", "peak_to_mean: 1.5"),
        ("rate: 1 req/s", "rate: 1 req/s, peak_to_mean: 1e300", "workloads.0.traffic.peak_to_mean", "at most 24"),
        ("rate: 1 req/s", "rate: 1 req/s, profile: 3", "workloads.0.traffic.profile", f"[{', '.join(['1.0'] * 24)}]"),
        (
            "rate: 1 req/s",
            f"rate: 1 req/s, profile: {[1e-300] * 24}",
            "workloads.0.traffic.profile",
            f"[{', '.join(['1.0'] * 24)}]",
        ),
        (
            "rate: 1 req/s",
            f"rate: 1 req/s, profile: {[1.0] * 23 + [1e308]}",
            "workloads.0.traffic.profile.23",
            "at most 1e+06",
        ),
        (
            "rate: 1 req/s",
            "rate: 1 req/s, burstiness: {dispersion_1s: 1e300}",
            "workloads.0.traffic.burstiness.dispersion_1s",
            "dispersion_1s: 1.5",
        ),
        (
            "traffic: {rate: 1 req/s}",
            ADAPTERS.replace("9", "1000000000"),
            "workloads.0.adapters.count",
            "at most 100000, for example count: 8",
        ),
        (
            "ttft: 500 ms, tpot: 50 ms}",
            "ttft: 500 ms, tpot: 50 ms}\n    tenant: {token_quota: -5 tok/s}",
            "workloads.0.tenant.token_quota",
            "token_quota: 5000 tok/s",
        ),
        (
            "ttft: 500 ms, tpot: 50 ms}",
            "ttft: 500 ms, tpot: 50 ms}\n    sharing: {hit_rate: 0.5, prefix_share: 0.4}",
            "workloads.0.sharing.hit_rate",
            "hit_rate: 0.4",
        ),
        ("promise: {ttft: 500 ms, tpot: 50 ms}", "promise: 3", "workloads.0.promise", "{ttft: 500 ms, tpot: 50 ms}"),
        ("deadline: 8 h", "deadline: 8", "workloads.1.promise.deadline", "'8 h'"),
        ("deadline: 8 h", "deadline: 900 d", "workloads.1.promise.deadline", "at most 30 d, for example deadline: 8 h"),
        ("documents: 1000", "documents: 10000000000000", "workloads.1.batch.documents", "documents: 1000000"),
        ("reserve: {nodes: 0}", "reserve: {nodes: 3}", "reserve.nodes", "the 2 nodes of the cluster"),
        ("reserve: {nodes: 0}", "reserve: {mtbf: -1 s}", "reserve.mtbf", "mtbf: 6335 h"),
        ("reserve: {nodes: 0}", "prices: {energy: 0.1 USD/h}", "prices.energy", "'USD/h' is of another kind"),
        ("nodes: 2}", "nodes: 2000000000}", "cluster.inventory.0.nodes", "nodes: 8"),
        ("layout: {tp: 1}", "layout: {tp: 2000000000}", "cluster.current.0.layout.tp", "tp: 8"),
        ("metric: nodes, max: 2", "metric: nodes, max: -1", "budgets.0.max", "16"),
        ("metric: nodes, max: 2", "metric: nodes, max: .nan", "budgets.0.max", "a finite number"),
        ("metric: nodes, max: 2", "metric: nodes, max: true", "budgets.0.max", "a number"),
        ("name: night", "name: chat", "workloads.1.name", "name: chat-2"),
        ("workloads: [chat]", "workloads: [chta]", "cluster.current.0.workloads.0", "did you mean 'chat'?"),
        ("metric: nodes, max: 2", "metric: load, workload: chta, max: 1", "budgets.0.workload", "'chat'?"),
    ],
)
def test_what_nobody_can_mean_is_told_in_one_line(old: str, new: str, field: str, right: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (line,) = faults(tmp_path, (old, new))
    assert re.match(rf"\d+: {re.escape(field)}: ", line), line
    assert right in line
    assert len(line) < 400


def test_every_fault_between_parts_is_told_at_its_line(tmp_path: Path) -> None:
    lines = faults(tmp_path, ("workloads: [chat]", "workloads: [chat, nihgt]"), ("name: night", "name: chat"))
    assert [line.split(": ")[:2] for line in lines] == [
        ["6", "cluster.current.0.workloads.1"],
        ["14", "workloads.1.name"],
    ]


def test_a_length_beyond_the_context_is_told_in_few_digits(tmp_path: Path) -> None:
    (line,) = faults(tmp_path, (INPUT, "input: {constant: 900000000}"))
    assert line.startswith("12: workloads.0.lengths: ")


def _without_its_field(option: object) -> object:
    """Return an annotation without the field that has the same metadata once more."""
    metadata = [mark for mark in complaints._metadata(option) if not isinstance(mark, FieldInfo)]
    return Annotated[complaints._bare(option), *metadata] if metadata else complaints._bare(option)


def _takes(adapter: TypeAdapter[object], value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def plain_fields(kind: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[tuple[str, list[object]]]:
    """Yield the options of every field of the documents that are no parts themselves."""
    seen.add(kind)
    for name in kind.model_fields:
        for option in (options := complaints._options(kind, (name,))):
            bare = complaints._bare(option)
            below = bare
            while get_origin(below) in (tuple, Union, UnionType, Annotated):
                below = get_args(below)[0]
            if not (isinstance(below, type) and issubclass(below, BaseModel)):
                yield f"{kind.__name__}.{name}", options
            elif below not in seen:
                yield from plain_fields(below, seen)


@pytest.mark.parametrize(("name", "options"), list(plain_fields(Scenario, set())))
def test_every_example_is_right(name: str, options: list[object]) -> None:
    example = complaints._example(options)
    value = yaml.safe_load(example)
    kinds = [_without_its_field(option) for option in options]
    adapters = [TypeAdapter[object](kind) for kind in kinds]  # type: ignore[arg-type]
    assert any(_takes(adapter, value) for adapter in adapters), (name, example)


@given(
    context=st.integers(8_192, 1_000_000),
    given_=st.tuples(st.floats(100, 3000), st.floats(1, 80)),
    made=st.tuples(st.floats(10, 1000), st.floats(1, 80)),
)
def test_tails_end_where_the_context_does(context: int, given_: tuple[float, float], made: tuple[float, float]) -> None:
    sides = [Lengths(p50=median, p90=median * ratio) for median, ratio in (given_, made)]
    whole = RequestLengths(input=sides[0], output=sides[1])
    cut = within(whole, context)
    if largest(sides[0]) + largest(sides[1]) > context:
        assert cut == whole  # refused elsewhere
    else:
        assert bins(cut.input).maximum + bins(cut.output).maximum <= context + 1e-6
        if bins(sides[0]).maximum < largest(sides[0]):
            assert cut.input.longest is None or cut.input.longest >= largest(sides[0])


def test_a_long_tail_is_planned_within_the_context(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(TEXT.replace(INPUT, "input: {p50: 1000, p90: 8000}", 1))
    case = resolve(read_document(path, Scenario), Catalog(), path)
    lengths = case.scenario.workloads[0].lengths
    context = case.models["llama-3.1-8b"].context
    assert 100_000 < bins(lengths.input).maximum <= context - 400
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recommend(case)
