"""Result files of load generators: their spellings, units and gaps, and what they cannot tell."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.check.observed import observations
from planner.errors import InputError
from planner.intake.results import is_result, read_results

RUN: dict[str, object] = {
    "model_id": "org/model",
    "num_prompts": 320,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 32,
    "duration": 100.0,
    "completed": 320,
    "total_input_tokens": 320 * 1024,
    "total_output_tokens": 320 * 256,
    "request_throughput": 3.2,
    "request_goodput:": 3.0,
    "output_throughput": 819.2,
    "mean_ttft_ms": 150.0,
    "median_ttft_ms": 120.0,
    "p99_ttft_ms": 900.0,
    "mean_tpot_ms": 12.5,
    "mean_itl_ms": 30.0,
    "mean_e2el_ms": 3337.5,
}
SERVED: dict[str, object] = {"engine": "vllm", "model": "llama-3.1-8b", "hardware": "h100-sxm", "tp": 1}


def written(folder: Path, text: str) -> Path:
    path = folder / "result.json"
    path.write_text(text, encoding="utf-8")
    return path


def found(folder: Path, **change: object) -> tuple[dict[str, object], dict[str, float], Counter[str]]:
    """Columns of the load, figures and reasons of a run."""
    unused = Counter[str]()
    values = {key: value for key, value in (RUN | change).items() if value is not None}
    rows = observations(read_results(written(folder, json.dumps(values))), SERVED, "result.json", unused)
    load = rows[0].model_dump(exclude_none=True) if rows else {}
    return load, {row.metric: row.value for row in rows}, unused


def test_a_run_of_vllm(tmp_path: Path) -> None:
    load, figures, unused = found(tmp_path)
    assert figures == pytest.approx(
        {
            "ttft_mean": 0.150,
            "ttft_p50": 0.120,
            "ttft_p99": 0.900,
            "tpot_mean": 0.0125,
            "e2e_latency": 3.3375,
            "output_tokens_per_s": 819.2,
        }
    )
    assert (load["kind"], load["concurrency"], load["num_prompts"]) == ("fixed_concurrency", 32, "320")
    assert (load["input_tokens"], load["output_tokens"]) == (1024, 256)
    assert not unused


def test_seconds_without_a_unit_and_milliseconds_are_the_same(tmp_path: Path) -> None:
    _, figures, _ = found(tmp_path, mean_ttft_ms=None, mean_ttft=0.150)
    assert figures["ttft_mean"] == pytest.approx(0.150)


def test_nought_is_not_measured(tmp_path: Path) -> None:
    _, figures, _ = found(tmp_path, mean_ttft_ms=0.0, median_ttft_ms=0.0, p99_ttft_ms=0.0)
    assert not any(name.startswith("ttft") for name in figures)


@pytest.mark.parametrize("rate", ["Infinity", '"inf"', "null"])
def test_a_rate_without_limit_is_spelt_in_several_ways(tmp_path: Path, rate: str) -> None:
    text = json.dumps(RUN | {"request_rate": 0}).replace('"request_rate": 0', f'"request_rate": {rate}')
    rows = observations(read_results(written(tmp_path, text)), SERVED, "f", Counter())
    assert {row.kind for row in rows} == {"fixed_concurrency"}


def test_without_a_limit_all_come_at_once(tmp_path: Path) -> None:
    load, _, _ = found(tmp_path, max_concurrency=None)
    assert (load["kind"], load["concurrency"]) == ("fixed_concurrency", 320)


def test_arrivals_at_a_rate_that_the_server_keeps_up_with(tmp_path: Path) -> None:
    load, figures, _ = found(tmp_path, request_rate=3.2, max_concurrency=None)
    assert (load["kind"], load["request_rate"]) == ("open_loop", 3.2)
    assert "output_tokens_per_s" not in figures, "it gives what is asked for"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"request_rate": 10.0, "max_concurrency": None}, "a queue grew"),
        ({"request_rate": 3.2}, "limit on the requests in flight"),
        ({"request_rate": 3.2, "max_concurrency": None, "burstiness": 0.5}, "not Poisson"),
        ({"request_rate": "trace"}, "'trace'"),
        ({"request_rate": 0.0}, "a rate of nought"),
        ({"failed": 20}, "requests failed"),
        ({"completed": 0}, "no request was answered"),
    ],
)
def test_what_tells_nothing_is_counted(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    _, figures, unused = found(tmp_path, **change)
    assert not figures
    ((why, count),) = unused.items()
    assert reason in why
    assert count == 6


def test_lengths_of_sglang_are_drawn_below_what_is_named(tmp_path: Path) -> None:
    load, _, _ = found(
        tmp_path, dataset_name="random", random_input_len=2048, random_output_len=512, random_range_ratio=0.5
    )
    assert (load["input_tokens"], load["output_tokens"]) == (2048, 512)
    assert load["length_jitter"] == "uniform 0.5-1 of nominal"


def test_lengths_one_by_one_say_how_far_they_spread(tmp_path: Path) -> None:
    """Drawn evenly between half and one and a half of the mean, both of them."""
    evenly = [500 + 10 * step for step in range(101)]
    load, _, _ = found(tmp_path, input_lens=evenly, output_lens=evenly)
    low, high = (float(end) for end in str(load["length_jitter"]).split()[1].split("-"))
    assert [low, high] == pytest.approx([0.5, 1.5], abs=0.01)


def test_draft_tokens_are_said(tmp_path: Path) -> None:
    load, _, _ = found(tmp_path, accept_length=2.4)
    assert load["speculative"] == "draft"


def test_runs_on_lines_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(json.dumps(RUN | {"max_concurrency": most}) for most in (1, 8)) + "\n\n")
    rows = observations(read_results(path), SERVED, "result.json", Counter())
    assert {row.concurrency for row in rows} == {1, 8}
    assert {row.id.split(":")[1] for row in rows} == {"1", "2"}


def test_aiperf_says_the_same_in_its_own_words(tmp_path: Path) -> None:
    value = {
        "input_config": {
            "endpoint": {"model_names": ["org/model"]},
            "loadgen": {"concurrency": 32, "request_rate": None, "request_count": 320},
        },
        "request_count": {"unit": "requests", "avg": 320.0},
        "error_request_count": None,
        "benchmark_duration": {"unit": "sec", "avg": 100.0},
        "total_isl": {"unit": "tokens", "avg": 320.0 * 1024},
        "total_osl": {"unit": "tokens", "avg": 320.0 * 256},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 819.2},
        "time_to_first_token": {"unit": "ms", "avg": 150.0, "p50": 120.0, "p99": 900.0},
        "inter_token_latency": {"unit": "us", "avg": 12500.0},
        "request_latency": {"unit": "sec", "avg": 3.3375, "p99": 4.0},
    }
    rows = observations(read_results(written(tmp_path, json.dumps(value))), SERVED, "result.json", Counter())
    _, figures, _ = found(tmp_path)
    assert {row.metric: row.value for row in rows} == pytest.approx(figures)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "duration is missing"),
        ('{"duration": 1}\n{"duration": }', "is not JSON"),
        ("[1, 2]", "holds no result"),
        ("[]", "holds no results"),
        (json.dumps(RUN | {"duration": -1}), "duration: -1"),
        (json.dumps(RUN | {"completed": "many"}), "completed"),
        (json.dumps(RUN).replace("100.0", "NaN"), "duration"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_result_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_results(written(tmp_path, text))


def test_a_file_that_is_missing_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_results(tmp_path / "absent.json")
    (tmp_path / "noise").write_bytes(b"{\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_results(tmp_path / "noise")
    with pytest.raises(InputError, match="cannot be read"):
        is_result(tmp_path / "absent.json")
    assert is_result(written(tmp_path, "  \n{}"))
    assert not is_result(written(tmp_path, "engine,model\n"))


@given(st.text(max_size=200))
def test_any_text_is_read_or_told(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass" if text.isascii() else "replace")
    with pytest.raises(InputError):
        read_results(path)


@pytest.mark.shared
def test_real_files_are_read(shared: Path) -> None:
    """Those of SGLang, AIPerf and InferenceX; what other tools write is told."""
    folder, unused = shared / "samples" / "bench", Counter[str]()
    rows = [
        row
        for name in (
            "sglang/datacrunch_llama_3_3_70b_online_output.jsonl",
            "aiperf/qwen_concurrency2/profile_export_aiperf.json",
            "inferencemax/glm5_fp8_vllm_tp8_isl1024_osl128_conc64.json",
        )
        for row in observations(read_results(folder / name), SERVED, name, unused)
    ]
    assert {row.kind for row in rows} == {"open_loop", "fixed_concurrency"}
    by = {(row.source.partition("/")[0], row.metric, row.concurrency): row.value for row in rows}
    assert by["inferencemax", "tpot_p50", 64] == pytest.approx(0.08786, rel=1e-3)
    assert by["aiperf", "ttft_mean", 2] == pytest.approx(0.036455, rel=1e-3)
    with pytest.raises(InputError, match="duration is missing"):
        read_results(folder / "llmperf" / "summary_anyscale_70b.json")
