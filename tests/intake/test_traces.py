"""Traces: each format is read in its own unit, and what is wrong is told with its line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.intake.traces import read_trace

SAMPLES = {
    "azure": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:17:03.9799600,4808,10\n"
        "2023-11-16 18:17:04.0319600,110,27\n"
    ),
    "mooncake": (
        '{"timestamp": 1000, "input_length": 4808, "output_length": 10, "hash_ids": [0]}\n'
        '{"timestamp": 1052, "input_length": 110, "output_length": 27, "hash_ids": [0]}\n'
    ),
    "vllm": (
        '{"arrival_time": 1777142838.0, "input_toks": 4808, "output_toks": 10, '
        '"queued_ts": 5.0, "first_token_ts": 5.5, "last_token_ts": 7.0}\n'
        '{"arrival_time": 1777142838.052, "input_toks": 110, "output_toks": 27, '
        '"queued_ts": 5.1, "first_token_ts": 5.3, "last_token_ts": 9.1}\n'
    ),
    "own": "arrival,input,output\n7.0,4808,10\n7.052,110,27\n",
    "own, out of order": "arrival,input,output\n7.052,110,27\n7.0,4808,10\n",
}


def written(folder: Path, text: str) -> Path:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_says_the_same(tmp_path: Path, name: str) -> None:
    trace = read_trace(written(tmp_path, SAMPLES[name]))
    assert trace.arrival == pytest.approx([0.0, 0.052], abs=1e-6)
    assert trace.input.tolist() == [4808, 110]
    assert trace.output.tolist() == [10, 27]
    assert (trace.first is not None) == (name == "vllm")


def test_measured_times_are_from_the_queue_on(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, SAMPLES["vllm"]))
    assert trace.first == pytest.approx([0.5, 0.2])
    assert trace.last == pytest.approx([2.0, 4.0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no requests"),
        ("arrival,input,output\n", "holds no requests"),
        ("when,input,output\n1,2,3\n", "no trace that is known; columns are"),
        ("arrival,input,output\n1,2,3\nx,2,3\n", "trace:3: arrival: arrival: 'x' should be a number"),
        ("arrival,input,output\n1,0,3\n", "input: 0|'0' should be a whole number"),
        ("arrival,input,output\n1,2.5,3\n", "should be a whole number from 1 on"),
        ("arrival,input,output\n1,2\n", "output"),
        ("arrival,input,output\ninf,2,3\n", "should be a number"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,2,3\n", "should be a moment"),
        ('{"arrival": 1, "input": 2, "output": 3}\n{"arrival": 1, "input"', "trace:2"),
        ('{"arrival": 1, "input": 2, "output": 3}\n[1]', "is no request"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_trace(written(tmp_path, text))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "absent")


@given(st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(1, 10**6), st.integers(1, 10**5)), min_size=1, max_size=20))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int, int]]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text("arrival,input,output\n" + "".join(f"{at!r},{a},{b}\n" for at, a, b in rows), encoding="utf-8")
    trace = read_trace(path)
    assert len(trace) == len(rows)
    assert (np.diff(trace.arrival) >= 0).all()
    assert sorted(trace.input.tolist()) == sorted(a for _, a, _ in rows)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "count", "rate"),
    [
        ("azure-2023/AzureLLMInferenceTrace_code.csv", 8819, 2.57),
        ("azure-2023/AzureLLMInferenceTrace_conv.csv", 19366, 5.53),
    ],
)
def test_public_traces_are_read_whole(shared: Path, name: str, count: int, rate: float) -> None:
    trace = read_trace(shared / "traces" / name)
    assert len(trace) == count
    assert count / trace.arrival[-1] == pytest.approx(rate, rel=0.01)
