"""Calibration: known factors are found again, what is not told stays, and the card says how far it holds."""

import csv
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.check.calibrate import Calibrated, calibrate
from planner.check.calibrated import answer, band, finished
from planner.check.expression import Expressed, express
from planner.check.factors import Key, stretched
from planner.check.kinds import predict
from planner.check.material import Material, Target, material, target
from planner.check.single import single
from planner.cli.main import run
from planner.errors import InputError
from planner.plan.answer import to_json
from planner.report.reference import schema
from planner.spec.bands import shipped_bands
from planner.spec.card import read_document
from planner.spec.catalog import Catalog
from planner.spec.efficiency import EfficiencyCard
from planner.spec.observation import Observation
from planner.spec.writing import as_yaml

CATALOG = Catalog()
PAIR = ("h100-sxm", "vllm")
SERVE = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
FACTORS: dict[Key, float] = {("decode_attention", "bf16"): 1.3, ("gemm_memory", "bf16"): 1.15, ("per_prefill", ""): 2.0}
POINTS = [(given, made, most) for given, made in ((256, 512), (2048, 256), (8192, 128)) for most in (1, 8, 64)]
STATIC = [(given, batch) for given in (1024, 8192) for batch in (1, 64)]


def row(metric: str, value: float, **change: object) -> Observation:
    base = {
        "engine": "vllm",
        "engine_version": "0.19",
        "model": "llama-3.1-8b",
        "kv_dtype": "bf16",
        "hardware": "h100-sxm",
        "tp": 1,
        "kind": "fixed_concurrency",
        "metric": metric,
        "value": value,
        "unit": "token/s" if "tokens" in metric else "s",
    }
    return Observation.model_validate(base | change)


def site(factors: dict[Key, float], metrics: tuple[str, ...] = ("ttft_mean", "tpot_mean")) -> list[Expressed]:
    """Measurements of a site whose times are those of the shipped card times ``factors``."""
    card = stretched(CATALOG.efficiency(*PAIR), {key: math.log(value) for key, value in factors.items()})
    rows = [
        row(metric, 1.0, input_tokens=given, output_tokens=made, concurrency=most)
        for given, made, most in POINTS
        for metric in metrics
    ] + [
        row("decode_step_time", 1.0, input_tokens=given, output_tokens=64, concurrency=batch, kind="decode")
        for given, batch in STATIC
    ]
    able = [express(one, CATALOG) for one in rows]
    true = predict([replace(one, configuration=replace(one.configuration, efficiency=card)) for one in able])
    return [
        replace(one, row=one.row.model_copy(update={"value": float(value)}))
        for one, value in zip(able, true, strict=True)
    ]


@pytest.fixture(scope="module")
def measured() -> list[Expressed]:
    return site(FACTORS)


@pytest.fixture(scope="module")
def found(measured: list[Expressed]) -> Calibrated:
    return calibrate(measured, CATALOG.efficiency(*PAIR), Counter())


def test_known_factors_are_found_again(found: Calibrated) -> None:
    """Within what noise of the model's own kind leaves open, and better than before on all rows."""
    by = {one.key: one for one in found.moved if one.identified}
    assert set(FACTORS) <= set(by)
    for key, value in FACTORS.items():
        assert by[key].factor == pytest.approx(value, rel=0.1), key
    assert np.median(np.abs(found.after)) < 0.02
    assert np.median(np.abs(found.after)) < np.median(np.abs(found.before)) / 4.0


def test_the_order_of_the_rows_does_not_matter(measured: list[Expressed], found: Calibrated) -> None:
    again = calibrate(measured[::-1], CATALOG.efficiency(*PAIR), Counter())
    assert again.card == found.card
    assert [one.row.id for one in again.rows] == [one.row.id for one in found.rows]


def test_what_is_not_measured_stays_and_says_what_would_tell(found: Calibrated) -> None:
    start = CATALOG.efficiency(*PAIR)
    assert found.card.formats["fp8"].gemm is not None
    assert start.formats["fp8"].gemm is not None
    assert found.card.formats["fp8"].gemm.memory == start.formats["fp8"].gemm.memory
    # Nothing ran across accelerators; a run with more of them tells of the collectives.
    (late,) = [one for one in found.moved if one.key == ("latency", "")]
    assert not late.identified
    assert late.factor == 1.0
    assert late.run is not None
    assert late.run.tp > 1


def test_one_row_identifies_nothing_and_names_a_run() -> None:
    rows = [express(row("ttft_p99", 0.2, input_tokens=512, output_tokens=32, concurrency=2), CATALOG)]
    with pytest.raises(InputError, match=r"identify no parameter of vllm on h100-sxm; measure also: llama-3.1-8b"):
        calibrate(rows, CATALOG.efficiency(*PAIR), Counter())


def test_no_row_says_why() -> None:
    with pytest.raises(InputError, match=r"none of the measurements can be used .2: measured with sglang"):
        calibrate([], CATALOG.efficiency(*PAIR), Counter({"measured with sglang on h100-sxm": 2}))


def test_the_card_is_read_again_and_holds_its_calibration(found: Calibrated, tmp_path: Path) -> None:
    of = target("h100-sxm", "vllm@0.19", None, CATALOG)
    given = Material(found.rows, Counter({"measured on paper": 3}), ("mine.csv",), ())
    card = finished(found, of, given, "mine")
    path = tmp_path / "any-name.yaml"
    path.write_text(as_yaml(card), encoding="utf-8")
    again = read_document(path, EfficiencyCard)
    assert again == card
    assert Catalog((tmp_path,)).efficiency(*PAIR) == card
    calibration = card.calibration
    assert calibration is not None
    assert (calibration.rows, calibration.start, card.version) == (len(found.rows), "h100-sxm--vllm", "0.19")
    assert {one.name for one in calibration.factors} == {one.key[0] for one in found.moved if one.identified}
    assert calibration.valid.input == (256, 8192)
    assert calibration.valid.in_flight == (1, 64)
    block = card.formats["bf16"]
    assert block.decode_attention is not None
    assert (block.decode_attention.source, block.decode_attention.basis) == ("calibration", "measured")
    fitted = predict([replace(one, configuration=replace(one.configuration, efficiency=card)) for one in found.rows])
    measured = np.array([one.row.value for one in found.rows])
    assert np.log(fitted / measured) == pytest.approx(found.after, abs=2e-3), "four digits are enough"


def test_a_prediction_uses_the_card_its_bands_and_its_range(found: Calibrated, tmp_path: Path) -> None:
    of = target("h100-sxm", "vllm", None, CATALOG)
    card = finished(found, of, Material(found.rows, Counter(), ("mine.csv",), ()), "mine")
    (tmp_path / "card.yaml").write_text(as_yaml(card), encoding="utf-8")
    own, bands = Catalog((tmp_path,)), shipped_bands()
    inside = row("tpot_mean", 1.0, input_tokens=2048, output_tokens=256, concurrency=8)
    before, after = single(inside, CATALOG, bands, "t"), single(inside, own, bands, "t")
    measured = next(one.row.value for one in found.rows if one.load.input == 2048 and one.load.circulating == 8)
    assert measured > 0
    assert after.tpot.value > before.tpot.value
    (residual,) = [one for one in card.calibration.residuals if one.metric == "tpot"]  # type: ignore[union-attr]
    wide = after.tpot.band[1] / after.tpot.band[0]
    expected = (residual.high / residual.low) if residual.rows >= 10 else before.tpot.band[1] / before.tpot.band[0]
    assert wide == pytest.approx(expected)
    assert not [one for one in after.assumptions if one.value == "extrapolated"]
    outside = inside.model_copy(update={"tp": 2, "input_tokens": 32000.0})
    words = [one.source for one in single(outside, own, bands, "t").assumptions if one.value == "extrapolated"]
    assert words == ["TP 2 is outside 1 to 1", "input 32000 is outside 256 to 8192"]


def test_a_card_of_another_accelerator_can_be_the_start(measured: list[Expressed]) -> None:
    of = target("h100-sxm", "vllm", "a100-80gb-sxm--vllm", CATALOG)
    assert of.carried
    assert (of.card.hardware, of.card.engine, of.start) == (*PAIR, "a100-80gb-sxm--vllm")
    rows = [express(one.row, CATALOG, {PAIR: of.card}) for one in measured]
    result = calibrate(rows, of.card, Counter(), carried=True)
    assert np.median(np.abs(result.after)) < np.median(np.abs(result.before))


@pytest.mark.parametrize(
    ("hardware", "engine", "start", "words"),
    [
        ("h101", "vllm", None, "h101"),
        ("h100-sxm", "vlm", None, "vlm"),
        ("h100-sxm", "vllm", "h100-sxm", "names no efficiency card"),
        ("h100-sxm", "vllm", "h100-sxm--vlm", "vlm"),
        (
            "mi300x",
            "tensorrt-llm",
            None,
            "there is no efficiency card of tensorrt-llm on mi300x to start from; add --from",
        ),
    ],
)
def test_what_is_not_known_is_told(hardware: str, engine: str, start: str | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        target(hardware, engine, start, CATALOG)


def result_file(folder: Path, name: str, rows: list[Expressed]) -> Path:
    """Write a result file of a load generator, one run a line, with the measurements of closed loops."""
    runs: dict[tuple[float, float, float], dict[str, object]] = {}
    for one in rows:
        if one.row.kind == "fixed_concurrency":
            load = one.load
            count = int(8 * load.circulating)
            of = runs.setdefault(
                (load.input, load.output, load.circulating),
                {
                    "request_rate": "inf",
                    "max_concurrency": int(load.circulating),
                    "duration": 60.0,
                    "completed": count,
                    "total_input_tokens": count * load.input,
                    "total_output_tokens": count * load.output,
                },
            )
            of[f"mean_{one.row.metric.removesuffix('_mean')}_ms"] = one.row.value * 1e3
    path = folder / name
    path.write_text("\n".join(json.dumps(one) for one in runs.values()), encoding="utf-8")
    return path


def table(folder: Path, name: str, rows: list[Expressed]) -> Path:
    """Write a table of measurements."""
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(Observation.model_fields))
        writer.writeheader()
        writer.writerows({key: value for key, value in one.row if value is not None} for one in rows)
    return path


def test_a_result_file_and_a_table_give_the_same_card(
    measured: list[Expressed], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight requests a place are what a table is taken for that does not say."""
    loops = [one for one in measured if one.row.kind == "fixed_concurrency"]
    files = {
        "one": [str(table(tmp_path, "mine.csv", loops))],
        "two": [str(result_file(tmp_path, "mine.jsonl", loops)), "--serve", f"{SERVE} --kv-cache-dtype auto"],
    }
    cards = []
    for name, said in files.items():
        out = tmp_path / f"{name}.yaml"
        status = run(["calibrate", *said, "--hardware", "h100-sxm", "--engine", "vllm@0.19", "-o", str(out)])
        assert status == 0, capsys.readouterr().err
        cards.append(read_document(out, EfficiencyCard))
        assert "calibrated" in capsys.readouterr().out
    assert [one.factor for one in cards[0].calibration.factors] == pytest.approx(  # type: ignore[union-attr]
        [one.factor for one in cards[1].calibration.factors],  # type: ignore[union-attr]
        rel=1e-3,
    )


def test_settings_of_the_server_count(measured: list[Expressed], tmp_path: Path) -> None:
    """A smaller step budget delays first tokens; that is not the kernels' fault."""
    path = result_file(tmp_path, "mine.jsonl", measured)
    of = target("h100-sxm", "vllm@0.19", None, CATALOG)
    plain = material([path], [SERVE], of, CATALOG)
    small = material([path], [f"{SERVE} --max-num-batched-tokens 1024 --swap-space 4"], of, CATALOG)
    assert small.unknown == ("--swap-space 4",)
    assert not np.allclose(predict(plain.rows), predict(small.rows))
    together = predict([*plain.rows, *small.rows])
    assert together == pytest.approx([*predict(plain.rows), *predict(small.rows)])


@pytest.mark.parametrize(
    ("files", "serve", "words"),
    [
        (("result",), [], "add --serve"),
        (("table",), [SERVE], "goes with result files"),
        (("result", "result", "result"), [SERVE, SERVE], "2 times --serve for 3 result files"),
        (("result",), ["python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B"], "runs sglang"),
    ],
)
def test_files_and_commands_go_together(
    measured: list[Expressed], tmp_path: Path, files: tuple[str, ...], serve: list[str], words: str
) -> None:
    made = {"result": result_file(tmp_path, "r.jsonl", measured), "table": table(tmp_path, "t.csv", measured)}
    with pytest.raises(InputError, match=words):
        material([made[one] for one in files], serve, target("h100-sxm", "vllm", None, CATALOG), CATALOG)


def test_rows_of_others_are_counted(measured: list[Expressed], tmp_path: Path) -> None:
    change: list[dict[str, object]] = [
        {"hardware": "h200-sxm"},
        {"engine": "sglang", "engine_version": None},
        {"tp": None},
        {},
    ]
    rows = [replace(measured[0], row=measured[0].row.model_copy(update=one)) for one in change]
    of = target("h100-sxm", "vllm", None, CATALOG)
    given = material([table(tmp_path, "t.csv", rows)], [], of, CATALOG)
    assert len(given.rows) == 1
    assert given.unused == {
        "measured with vllm on h200-sxm": 1,
        "measured with sglang on h100-sxm": 1,
        "the layout is not stated": 1,
    }


def test_the_answer_is_valid_by_its_schema(found: Calibrated) -> None:
    of: Target = target("h100-sxm", "vllm", None, CATALOG)
    given = Material(found.rows, Counter(), ("mine.csv",), ("--swap-space 4",))
    said = answer(found, finished(found, of, given, "mine"), given, "test", "card.yaml")
    jsonschema.validate(json.loads(to_json(said)), schema("calibrate"), jsonschema.Draft202012Validator)
    assert sum(one.rows for one in said.errors) == said.rows == len(found.rows)
    assert all(one.factor == 1.0 for one in said.factors if not one.identified)


def test_nothing_is_written_where_nothing_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.csv").write_text("engine,model\n", encoding="utf-8")
    out = tmp_path / "card.yaml"
    assert run(["calibrate", str(tmp_path / "bad.csv"), "--hardware", "h100-sxm", "-o", str(out)]) == 2
    assert "is missing" in capsys.readouterr().err
    assert not out.exists()


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=60))
def test_a_band_is_in_order_and_no_narrower_than_the_rows(log: list[float]) -> None:
    low, high = band(np.array(log))
    inner = np.exp(np.quantile(log, [0.1, 0.9]))
    assert low <= inner[0] * (1 + 1e-12)
    assert high >= inner[1] * (1 - 1e-12)
