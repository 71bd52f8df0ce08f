"""The commands ``accuracy`` and ``predict``, as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PREDICT = ("predict", "llama-3.1-8b", "h100-sxm", "--input", "1000", "--output", "100")


def planner(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "planner", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_both_answer_in_every_form(form: str) -> None:
    for words in (("accuracy", "--by", "engine"), (*PREDICT, "--concurrency", "8")):
        done = planner(*words, "--format", form)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        if form == "json":
            assert json.loads(done.stdout)["schema_version"] == "1"
        else:
            assert "%" in done.stdout


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("accuracy", "none.csv"), 2, "none.csv"),
        (("accuracy", "--by", "colour"), 2, "'colour'"),
        (PREDICT, 2, "--concurrency"),
        ((*PREDICT, "--concurrency", "8", "--rate", "1"), 2, "--rate"),
        ((*PREDICT, "--concurrency", "8", "--weights", "fp7"), 2, "--weights"),
        (("predict", "llama-9", *PREDICT[2:], "--concurrency", "8"), 2, "'llama-9'"),
        (("predict", "llama-3.1-405b", *PREDICT[2:], "--concurrency", "8"), 1, "memory"),
        ((*PREDICT, "--concurrency", "8", "--engine", "vlm@0.19"), 2, "'vlm'"),
    ],
)
def test_faults_are_told_in_a_line(words: tuple[str, ...], status: int, said: str, tmp_path: Path) -> None:
    done = planner(*words)
    assert done.returncode == status, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
