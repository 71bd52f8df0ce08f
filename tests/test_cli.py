"""The command line: help that is fast to load, errors that help, and files that are whole or untouched."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import jsonschema
import pytest
import yaml

from planner.cli import main, output
from planner.cli.reference import command_paths
from planner.spec.catalog import KINDS, Catalog

Done = subprocess.CompletedProcess[str]
EVERY_COMMAND = ["planner", *command_paths()]


def planner(*arguments: str | Path, folder: Path | None = None) -> Done:
    """Run the command as a user would, apart from this process."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "planner", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def is_told(done: Done, *words: str) -> bool:
    """Whether the user is told what is wrong: status 2, our lines on standard error only, and no traceback."""
    lines = done.stderr.splitlines()
    return (
        done.returncode == 2
        and done.stdout == ""
        and bool(lines)
        and all(line.startswith("planner: ") for line in lines)
        and all(word in done.stderr for word in words)
    )


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_every_command_has_help(path: str) -> None:
    done = planner(*path.split()[1:], "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {path}")
    assert done.stderr == ""


def test_planner_alone_shows_its_help() -> None:
    assert planner().stdout == planner("--help").stdout


def test_the_version_is_the_packages() -> None:
    assert planner("--version").stdout == f"planner {version('goodput-planner')}\n"


def test_help_loads_no_heavy_library() -> None:
    """What makes a command slow to start: none of it is needed to say what the commands are."""
    code = (
        "import sys; from planner.cli.main import run; run(['--help']); "
        "print(*sorted({'numpy', 'scipy', 'pydantic', 'rich', 'yaml', 'tabulate', 'quantiphy'} & set(sys.modules)), "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert "recommend" in done.stdout
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["recomend"], ["'recomend'", "'recommend'"]),
        (["cards", "lst"], ["'lst'", "'list'"]),
        (["recommend", "--foramt", "json"], ["--foramt", "--format"]),
        (["recommend", "--format", "xml"], ["'xml'", "'terminal'", "'json'", "'markdown'"]),
        (["recommend", "--objective", "speed"], ["'speed'", "'cost'", "'goodput'"]),
        (["recommend", "orbti"], ["'orbti'", "'orbit'"]),
        (["recommend", "nowhere/scenario.yaml"], ["nowhere/scenario.yaml"]),
        (["recommend", "--cards", "nowhere"], ["nowhere"]),
        (["explain"], ["WORKLOAD"]),
        (["explain", "quickstart", "caht"], ["'caht'", "'chat'"]),
        (["explain", "quickstart", "chat", "more"], ["'more'"]),
        (["cards", "show", "h100-smx"], ["'h100-smx'", "'h100-sxm'"]),
        (["cards", "show", "h100-sxm", "--kind", "model"], ["model", "'h100-sxm'"]),
        (["cards", "schema", "modle"], ["'modle'", "'model'"]),
    ],
    ids=" ".join,
)
def test_a_slip_is_told_with_its_mend(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = planner(*arguments, folder=tmp_path)
    assert is_told(done, *words), f"{done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "content",
    [b"", b"- a list", b"name: [unclosed", b"\xff\xfe\x00binary", b"name: x\nclutser: {}\n", b"a: &x 1\nb: *x\n"],
    ids=["empty", "list", "broken", "binary", "misspelt", "anchors"],
)
def test_a_bad_scenario_is_told_by_file(content: bytes, tmp_path: Path) -> None:
    scenario = tmp_path / "bad.yaml"
    scenario.write_bytes(content)
    done = planner("recommend", scenario)
    assert is_told(done, "bad.yaml"), f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    folder = tmp_path / "folder.yaml"
    folder.mkdir()
    done = planner("recommend", folder)
    assert is_told(done, "folder.yaml"), f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def test_all_faults_of_a_scenario_are_told_at_once(tmp_path: Path) -> None:
    text = Catalog().scenario_file("quickstart").read_text(encoding="utf-8")
    scenario = tmp_path / "quickstart.yaml"
    scenario.write_text(text.replace("500 ms", "500").replace("40 ms", "40 GB").replace("10 req/s", "-1 req/s"))
    done = planner("recommend", scenario)
    assert is_told(done, "ttft", "tpot", "rate", "'40 GB'"), done.stderr
    assert len(done.stderr.splitlines()) == 3


def test_the_quickstart_is_planned_and_written_whole(tmp_path: Path) -> None:
    said = planner("recommend", "quickstart", "--format", "json")
    wrote = planner("recommend", "quickstart", "--format", "json", "--output", tmp_path / "plan.json")
    assert (said.returncode, wrote.returncode) == (0, 0), said.stderr
    assert wrote.stdout == ""
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == said.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    plan = json.loads(said.stdout)
    jsonschema.validate(plan, json.loads(planner("cards", "schema", "recommend").stdout))
    assert plan["feasible"]
    assert plan["within_budgets"]


def test_no_such_plan_is_an_answer(tmp_path: Path) -> None:
    """Load that no single node carries: status 1, and the reasons on standard output."""
    text = Catalog().scenario_file("quickstart").read_text(encoding="utf-8")
    scenario = tmp_path / "quickstart.yaml"
    scenario.write_text(text.replace("rate: 10 req/s", "rate: 100000 req/s"))
    done = planner("recommend", scenario, "--format", "json")
    assert done.returncode == 1, done.stderr
    plan = json.loads(done.stdout)
    assert not plan["feasible"]
    assert plan["infeasible"]


@pytest.mark.parametrize("form", ["terminal", "json", "markdown"])
def test_a_workload_is_explained(form: str) -> None:
    done = planner("explain", "quickstart", "chat", "--format", form)
    assert done.returncode == 0, done.stderr
    assert "chat" in done.stdout


def test_orbit_is_meant_where_no_scenario_is_named() -> None:
    workload = Catalog().scenario("orbit").workloads[0].name
    done = planner("explain", workload, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == planner("explain", "orbit", workload, "--format", "json").stdout


@pytest.mark.parametrize("place", ["missing/plan.txt", "."])
def test_an_output_that_cannot_be_written_is_told(place: str, tmp_path: Path) -> None:
    done = planner("cards", "list", "--kind", "engine", "--output", tmp_path / place)
    assert is_told(done, str(tmp_path / place)), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    output = tmp_path / "cards.txt"
    output.write_text("old")
    output.chmod(0o640)
    assert planner("cards", "list", "--kind", "engine", "--output", output).returncode == 0
    assert "vllm" in output.read_text()
    assert output.stat().st_mode & 0o777 == 0o640


def test_a_link_and_a_device_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    planner("cards", "list", "--kind", "engine", "--output", tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert "vllm" in (tmp_path / "real.txt").read_text()
    done = planner("cards", "list", "--kind", "engine", "--output", "/dev/stdout")
    assert done.stdout == (tmp_path / "real.txt").read_text()


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "planner", "cards", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), complaint) == (0, b"")


def shell(line: str, **environment: str) -> Done:
    """Run a line of a shell in which $PLANNER is the command."""
    return subprocess.run(
        ["/bin/bash", "-c", line],
        env={**os.environ, "PLANNER": f"{sys.executable} -P -m planner", "NO_COLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "status"),
    [("cards list", 0), ("recommend quickstart", 0), ("--help", 0), ("recommend --help", 0), ("recommend nowhere", 2)],
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_defect(command: str, status: int, closed: str) -> None:
    done = shell(f"$PLANNER {command} {closed}")
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    if "2>&-" in closed:
        assert "planner: " not in done.stdout


@pytest.mark.parametrize("command", ["--help", "recommend --help", "cards --help", "--version", "cards list"])
def test_help_that_nobody_reads_to_its_end_is_no_failure(command: str) -> None:
    done = shell(f"$PLANNER {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("command", ["recommend nowhere", "recommend --format xml", "recomend"])
@pytest.mark.parametrize("full", ["2>/dev/full", "2> >(true)"])
def test_complaints_that_nobody_can_read_leave_the_status(command: str, full: str) -> None:
    done = shell(f"$PLANNER {command} {full}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_terminal_too_narrow_for_figures_is_taken_as_wider() -> None:
    narrow, usual = (shell("$PLANNER recommend quickstart", COLUMNS=columns) for columns in ("1", "40"))
    assert narrow.stdout == usual.stdout
    assert narrow.returncode == 0


@pytest.mark.parametrize("command", ["recommend", "recommend quickstart --output", "recommend quickstart --cards"])
def test_a_name_of_any_length_is_told_shortly(command: str) -> None:
    done = planner(*command.split(), "x" * 5000 + ".yaml")
    assert is_told(done, "xxx...")
    assert len(done.stderr) < 500


def test_a_narrow_encoding_loses_letters_not_answers() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "planner", "cards", "show", "orbit"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "write", interrupted)
    assert main.run(["cards", "list", "--kind", "engine"]) == main.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_a_defect_is_not_mistaken_for_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def defective(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(output, "write", defective)
    assert main.run(["cards", "list", "--kind", "engine"]) == main.PROGRAM_AT_FAULT
    assert "defect" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_a_shown_card_is_the_card(kind: str, tmp_path: Path) -> None:
    """What `show` prints, read again from a folder of one's own, shows the same; it also fulfils its schema."""
    listed = json.loads(planner("cards", "list", "--kind", kind, "--format", "json").stdout)["cards"]
    name = listed[0]["name"]
    shown = planner("cards", "show", name, "--kind", kind)
    assert shown.returncode == 0, shown.stderr
    (tmp_path / f"{name}.yaml").write_text(shown.stdout, encoding="utf-8")
    again = planner("cards", "show", name, "--kind", kind, "--cards", tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == shown.stdout
    schema = json.loads(planner("cards", "schema", kind).stdout)
    jsonschema.validate(json.loads(planner("cards", "show", name, "--kind", kind, "--format", "json").stdout), schema)
    origin = json.loads(planner("cards", "list", "--kind", kind, "--format", "json", "--cards", tmp_path).stdout)
    assert [card["origin"] for card in origin["cards"] if card["name"] == name] == ["own"]


def test_a_card_shows_units_and_sources() -> None:
    done = planner("cards", "show", "h100-sxm")
    card = yaml.safe_load(done.stdout)
    assert card["memory"]["bandwidth"] == "3.35 TB/s"
    assert card["memory"]["source"] in card["sources"]
    markdown = planner("cards", "show", "h100-sxm", "--format", "markdown").stdout
    assert f"```yaml\n{done.stdout}```" in markdown


def test_own_cards_come_first(tmp_path: Path) -> None:
    text = planner("cards", "show", "h100-sxm").stdout
    (tmp_path / "h100-sxm.yaml").write_text(text.replace("3.35 TB/s", "3.3 TB/s"), encoding="utf-8")
    assert "3.3 TB/s" in planner("cards", "show", "h100-sxm", "--cards", tmp_path).stdout


def test_a_plan_loads_neither_a_compiler_nor_scipy(tmp_path: Path) -> None:
    """Both take longer than the plan itself; only what simulates and fits needs them."""
    script = (
        "import sys; from planner.cli.main import run; "
        f"status = run(['recommend', 'quickstart', '--explain', '--output', {str(tmp_path / 'plan.txt')!r}]); "
        "print(status, sorted({'numba', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
