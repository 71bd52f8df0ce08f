"""Every benchmark still runs, at its smallest. How long it takes is nobody's assertion."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent)).resolve()
BENCHMARKS = ROOT / "benchmarks"


def run(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-P", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


def test_evaluations_counts_candidates() -> None:
    lines = run(BENCHMARKS / "evaluations.py", "--runs", "1").splitlines()
    counts = [int(line.split()[1]) for line in lines]
    assert counts[-1] == sum(counts[:-1]) > 0


def test_whole_process_times_every_command() -> None:
    lines = run(BENCHMARKS / "whole_process.py", "--runs", "1").splitlines()
    for command in ("planner --help", "planner recommend ", "planner recommend --format json", "planner explain chat"):
        assert any(re.match(rf"{re.escape(command)}.* s .* s .* MB$", line) for line in lines), lines


def test_plan_scale_plans_a_feasible_site() -> None:
    said = run(BENCHMARKS / "plan_scale.py", "--workloads", "6", "--nodes", "24", "--runs", "1")
    assert said.startswith("6 workloads of 6 models, 24 nodes of 4 kinds: ")
    assert "feasible yes" in said


def test_plan_scale_has_as_many_workloads_models_and_nodes_as_it_says() -> None:
    case = module("plan_scale").scenario(50, 500)
    assert len(case.scenario.workloads) == 50
    assert len(case.models) == 10
    assert sum(stock.nodes for stock in case.scenario.cluster.inventory) == 500
    assert len(case.hardware) == 4
    assert sum(work.promise.deadline is not None for work in case.scenario.workloads) == 5


def test_choice_scale_measures_a_small_case(capsys: pytest.CaptureFixture[str]) -> None:
    choice_scale = module("choice_scale")
    choice_scale.measure("small", choice_scale.case(2, 3, {"h100": 4}, 4.0))
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["small", "cost"],
        ["small", "nodes"],
    ]


def test_record_writes_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    record = module("record")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{record.BEGIN}old{record.END}after\n", encoding="utf-8")
    run(BENCHMARKS / "record.py", "--quick", "--page", page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{record.BEGIN}")
    assert text.endswith(f"{record.END}after\n")
    assert "old" not in text
    for script, *_ in record.QUICK:
        assert f"`python benchmarks/{script}" in text


def test_the_simulator_is_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(ROOT))  # it shares the traffic of another benchmark
    module("simulate_scale").main(["--requests", "500", "--replicas", "2"])
    shown = capsys.readouterr().out
    assert re.search(r"^run: [\d.]+ s, 500 requests, 2 replicas, \d+ steps$", shown, re.MULTILINE)


def test_closed_forms_are_held_against_the_simulator() -> None:
    """A small version of the page; its bounds are wide, since so few requests leave much to chance."""
    grid = module("queueing_grid")
    catalog = grid.Catalog()
    rows = grid.grid(catalog, ["fixed 1,000 and 200", "Azure conversation"], (0.5, 0.8), (1.0,), 30_000)
    assert len(rows) == 4
    for row in rows:
        mean, _, tail, each = (float(cell.strip("()").partition(" ")[0]) for cell in row[3:7])
        assert abs(mean) < 15
        assert abs(tail) < 30
        assert abs(each) < 5


def test_the_page_is_what_record_writes() -> None:
    record = module("record")
    text = record.PAGE.read_text(encoding="utf-8")
    recorded = text.partition(record.BEGIN)[2].partition(record.END)[0]
    for command in record.COMMANDS:
        assert f"`python benchmarks/{' '.join(command)}`\n\n```text\n" in recorded


def test_the_readme_of_the_benchmarks_names_every_script() -> None:
    text = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted(BENCHMARKS.glob("*.py")) if path.name not in text] == []
