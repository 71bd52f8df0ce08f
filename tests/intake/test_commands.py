"""Commands that people run: read whatever the spelling, with everything unknown named and nothing dropped."""

import shlex
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.check.asked import asked
from planner.errors import InputError
from planner.intake.commands import LOADERS, SERVERS, read_command
from planner.spec.catalog import Catalog

CATALOG = Catalog()
BENCH = "vllm bench serve --random-input-len 1024 --random-output-len 256 --max-concurrency 32 --num-prompts 320"
FLAGS = (
    ("--tensor-parallel-size", "4"),
    ("--max-num-seqs", "128"),
    ("--gpu-memory-utilization", "0.85"),
    ("--kv-cache-dtype", "fp8"),
    ("--swap-space", "4"),
    ("--port", "9000"),
)


def read(serve: str, bench: str = BENCH) -> dict[str, object]:
    return dict(asked(serve, bench, "h100-sxm", None, CATALOG).row)


def test_vllm() -> None:
    text = "VLLM_USE_V1=1 HF_TOKEN=x vllm serve RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8 -tp 4 --max_num_seqs 128 --foo"
    found = asked(text, BENCH, "h100-sxm", "0.19", CATALOG)
    row = found.row
    assert (row["model"], row["engine"], row["engine_version"]) == ("llama-3.1-70b", "vllm", "0.19")
    assert (row["tp"], row["accelerators"], row["weights_dtype"]) == (4, 4, "fp8")
    assert (row["concurrency"], row["num_prompts"], row["kind"]) == (32, "320", "fixed_concurrency")
    assert row.get("length_jitter") is None
    assert found.settings.max_batch == 128
    assert found.flags.unknown == ("VLLM_USE_V1=1", "--foo")


def test_sglang_counts_attention_ranks_among_the_tensor_parallel_ones() -> None:
    serve = "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --enable-dp-attention"
    row = read(serve, "python -m sglang.bench_serving --random-input 1000 --random-output 500 --request-rate 4")
    assert (row["tp"], row["dp"], row["dp_kind"], row["accelerators"]) == (1, 8, "attention", 8)
    assert (row["kind"], row["request_rate"]) == ("open_loop", 4.0)
    assert row["length_jitter"] == "uniform 0.01-1 of nominal"
    apart = read(serve.replace(" --enable-dp-attention", ""))
    assert (apart["tp"], apart["dp_kind"], apart["accelerators"]) == (8, "replicas", 64)


def test_tensorrt_llm_names_the_file_that_is_not_read() -> None:
    serve = "trtllm-serve Qwen/Qwen3-32B --tp_size 2 --max_num_tokens 4096 --extra_llm_api_options more.yaml"
    found = asked(serve, "aiperf profile --isl 1000 --osl 200 --concurrency 16", "h200-sxm", None, CATALOG)
    assert (found.row["engine"], found.row["tp"]) == ("tensorrt-llm", 2)
    assert found.settings.token_budget == 4096
    assert found.flags.unknown == ("--extra-llm-api-options more.yaml",)


def test_experts_are_spread_over_all_ranks() -> None:
    row = read("vllm serve Qwen/Qwen3-235B-A22B -tp 2 -dp 4 --enable-expert-parallel")
    assert (row["ep"], row["dp_kind"], row["accelerators"]) == (8, "attention", 8)
    assert read("vllm serve Qwen/Qwen3-8B -tp 2 -dp 4")["dp_kind"] == "replicas"


def test_a_static_batch() -> None:
    row = read("vllm serve Qwen/Qwen3-8B", "vllm bench latency --input-len 512 --output-len 64 --batch-size 8")
    assert (row["kind"], row["concurrency"]) == ("decode", 8)


def test_without_a_limit_all_requests_come_at_once() -> None:
    bench = "vllm bench serve --random-input-len 128 --random-output-len 64 --num-prompts 500"
    assert read("vllm serve Qwen/Qwen3-8B", bench)["concurrency"] == 500


@given(order=st.permutations(FLAGS), joined=st.lists(st.booleans(), min_size=6, max_size=6), under=st.booleans())
def test_neither_order_nor_spelling_matters(order: list[tuple[str, str]], joined: list[bool], *, under: bool) -> None:
    words = []
    for (flag, value), one in zip(order, joined, strict=True):
        name = f"--{flag[2:].replace('-', '_')}" if under else flag
        words += [f"{name}={value}"] if one else [name, value]
    found = read_command(f"vllm serve Qwen/Qwen3-8B {' '.join(words)}", SERVERS, "--serve")
    assert found.model == "Qwen/Qwen3-8B"
    assert found.values == {"tp": "4", "max_batch": "128", "memory": "0.85", "kv": "fp8"}
    assert [one.replace("=", " ") for one in found.unknown] == ["--swap-space 4"]


WORDS = st.sampled_from(
    ["vllm", "serve", "bench", "python", "-m", "sglang.launch_server", "trtllm-serve", "--tp", "-tp", "-1", "nan", "''"]
)


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=8).map(" ".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    for serve, bench in (
        (text, BENCH),
        ("vllm serve Qwen/Qwen3-8B", text),
        (f"vllm serve Qwen/Qwen3-8B {text}", BENCH),
    ):
        # Anything but a fault of the input fails the test.
        with suppress(InputError):
            assert asked(serve, bench, "h100-sxm", None, CATALOG).row["hardware"] == "h100-sxm"


@pytest.mark.parametrize(
    ("serve", "bench", "said"),
    [
        ("vllm serve", BENCH, "names no model"),
        ("nginx", BENCH, "begins as no command that is known"),
        ("vllm serve Qwen/Qwen3-8B -tp two", BENCH, "tp 'two' should be a number"),
        ("vllm serve Qwen/Qwen3-8B -tp 0", BENCH, "whole number from 1 on"),
        ("vllm serve Qwen/Qwen3-8B -tp", BENCH, "expected one argument"),
        ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 90", BENCH, "at most 1"),
        ("vllm serve Qwen/Qwen3-8B --max-model-len 1000", BENCH, "1280 tokens a request"),
        ("vllm serve 'Qwen", BENCH, "is no command line"),
        ("vllm serve Qwen/Qwen3-8B", "vllm bench serve --max-concurrency 4", "does not say how many tokens"),
        ("vllm serve Qwen/Qwen3-8B", f"{BENCH} --random-range-ratio 3", "between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said(serve: str, bench: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(serve, bench, "h100-sxm", None, CATALOG)


def test_every_program_has_flags_of_one_meaning() -> None:
    for program in (*SERVERS, *LOADERS):
        flags = [flag for of in (program.used, program.switches) for names in of.values() for flag in names]
        assert len(flags) == len(set(flags)), program.words
        assert shlex.split(" ".join(program.words)) == list(program.words)
