"""The public JSON: its keys, its rounding, and what it refuses."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.plan.answer import Candidates, Change, CheckItem, Recommendation, Solver, rounded, to_json
from planner.plan.predicted import AtPercentile, Percentiles

finite = st.floats(allow_nan=False, allow_infinity=False, max_value=1e300, min_value=-1e300)


@given(finite)
def test_rounding_moves_a_figure_by_less_than_one_part_in_a_hundred_thousand(value: float) -> None:
    result = rounded(value)
    assert isinstance(result, float)
    assert math.isclose(result, value, rel_tol=5.0000001e-6, abs_tol=1e-320)


@given(finite)
def test_rounding_twice_is_rounding_once(value: float) -> None:
    assert rounded(rounded(value)) == rounded(value)


@given(finite, finite)
def test_rounding_keeps_the_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    first, second = rounded(low), rounded(high)
    assert isinstance(first, float)
    assert isinstance(second, float)
    assert first <= second


@given(st.floats(min_value=1e-3, max_value=1e3).map(lambda value: float(f"{value:.6g}")))
def test_noise_of_the_last_bit_does_not_show(value: float) -> None:
    assert rounded(math.nextafter(value, math.inf)) == rounded(value) == rounded(math.nextafter(value, -math.inf))


def test_negative_zero_is_zero() -> None:
    assert json.dumps(rounded(-0.0)) == "0.0"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        AtPercentile(percentile=95.0, value=value, band=(None, None))
    with pytest.raises(ValidationError, match="finite"):
        AtPercentile(percentile=95.0, value=None, band=(0.1, value))
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(Solver.model_construct(status="optimal", gap=value))


def test_counts_come_in_the_order_of_their_names() -> None:
    one = Candidates(tried=3, rejected={"tpot": 1, "heads": 2})
    other = Candidates(tried=3, rejected={"heads": 2, "tpot": 1})
    assert to_json(one) == to_json(other)
    assert list(json.loads(to_json(one))["rejected"]) == ["heads", "tpot"]


def test_the_ends_of_a_change_are_called_from_and_to() -> None:
    text = to_json(Change(field="weights_dtype", from_="bf16", to="fp8", unit=""))
    assert json.loads(text) == {"field": "weights_dtype", "from": "bf16", "to": "fp8", "unit": ""}
    assert Change.model_validate_json(text).from_ == "bf16"


def test_only_the_optional_keys_of_a_check_are_left_out() -> None:
    bare = CheckItem(metric="nodes", severity="fail", value=None, margin=None, met=False)
    assert list(json.loads(to_json(bare))) == ["metric", "severity", "value", "margin", "met"]
    full = CheckItem(
        metric="ttft_p95",
        workload="chat",
        severity="warn",
        min=0.0,
        max=0.5,
        value=0.4,
        margin=0.2,
        met=True,
        location="orbit.yaml:3",
    )
    keys = ["metric", "workload", "severity", "min", "max", "value", "margin", "met", "location"]
    assert list(json.loads(to_json(full))) == keys


def keys(kind: type[Any]) -> str:
    return " ".join(kind.model_json_schema(mode="serialization")["properties"])


def test_keys_stand_as_published() -> None:
    """A key that moves or changes its name here breaks those who read version 1."""
    definitions = Recommendation.model_json_schema(mode="serialization")["$defs"]
    found = {name: " ".join(made["properties"]) for name, made in definitions.items() if "properties" in made}
    assert keys(Recommendation) == (
        "schema_version planner_version scenario feasible within_budgets cluster workloads candidates runner_up "
        "sensitivities infeasible assumptions checks solver"
    )
    assert keys(Percentiles) == "mean p50 p90 p95 p99 at limit"
    assert found == {
        "Assumption": "name value unit source",
        "AtPercentile": "percentile value band",
        "Candidates": "tried rejected",
        "Change": "field from to unit",
        "CheckItem": "metric workload severity min max value margin met location",
        "ClusterUse": "nodes nodes_used accelerators accelerators_used spare_nodes cost_per_hour power_watts",
        "Cost": "per_hour per_million_output_tokens per_request per_successful_task",
        "DeadlineResult": "limit finish band met",
        "Failure": "one_node_lost availability",
        "Infeasible": "workload binding value limit nearest",
        "Kv": "decision break_even_bandwidth link_bandwidth bytes_per_token",
        "Layout": "tp pp ep dp ffn",
        "Memory": "weights kv activations reserve capacity",
        "NodeLost": "goodput_share capacity_share requests_lost",
        "Operations": "router admission migration startup scaling",
        "Percentiles": "mean p50 p90 p95 p99 at limit",
        "Pool": "id shared_with role hardware engine weights_dtype kv_dtype layout replicas spare_replicas "
        "accelerators_per_replica accelerators nodes max_batch token_budget utilisation load answerable_below_rps "
        "memory",
        "Predicted": "ttft tpot deadline goodput_share goodput_share_band goodput_share_required "
        "promise_probability offered_rps goodput_rps output_tokens_per_s prefix_hit_rate",
        "RunnerUp": "objective delta changes probability",
        "Sensitivity": "input elasticity flips_at",
        "Signal": "signal threshold unit why",
        "Solver": "status gap",
        "WorkloadPlan": "name model decision reasons revisit_when pools predicted kv failure operations cost",
    }


def test_every_key_is_required_but_those_of_a_check() -> None:
    made = Recommendation.model_json_schema(mode="serialization")
    kinds = {"Recommendation": made, **made["$defs"]}
    optional = {
        (name, key)
        for name, kind in kinds.items()
        for key in set(kind.get("properties", {})) - set(kind.get("required", []))
    }
    assert optional == {("CheckItem", key) for key in ("workload", "min", "max", "location")}
