"""The documents are true: every example runs, and what can be generated is generated.

A ``console`` block holds commands after ``$ `` and their output, where ``...`` stands for what is left out; a command
that ends in ``# exit status N`` must end with N, any other with 0. A ``python`` block is a doctest where it has
prompts, and must run as it is where it has none. A ``yaml`` block whose first line is a comment with a file name is
that file for the blocks after it. All blocks of a document share a folder and a Python namespace. A ``sh`` block sets
something up and is not run here: the continuous integration runs the two of the README.

Where figures have moved on purpose, ``python tests/test_docs.py`` writes the outputs of all documents anew, or of those
that it is given, but for outputs that leave something out.
"""

import contextlib
import doctest
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.cli.reference import command_paths, reference

ROOT = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent)).resolve()
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
GENERATED = {ROOT / "docs/reference/cli.md"}
LANGUAGES = {"console", "python", "yaml", "sh", "text", "json"}
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT_STATUS = re.compile(r"#\s*exit status (\d+)\s*$")
FILE_NAME = re.compile(r"#\s*(?P<name>[\w.-]+\.ya?ml)\s*\n")
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#\s]+)(?:#[^)]*)?\)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(document: Path) -> list[tuple[str, str]]:
    return [(match["language"], match["body"]) for match in FENCE.finditer(document.read_text(encoding="utf-8"))]


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block, each with the output that is shown for it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a document as a reader with a wide terminal would."""
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )


def run_console(body: str, folder: Path) -> None:
    for command, expected in commands(body):
        done = shell(command, folder)
        status = EXIT_STATUS.search(command)
        assert done.returncode == (int(status[1]) if status else 0), f"$ {command}\n{done.stdout}"
        assert doctest.OutputChecker().check_output(expected, done.stdout, FLAGS), f"$ {command}\n{done.stdout}"


def run_python(body: str, names: dict[str, object], document: Path) -> None:
    if ">>>" not in body:
        exec(compile(body, str(document), "exec"), names)  # noqa: S102 - running the example is the test
        return
    test = doctest.DocTestParser().get_doctest(body, names, document.name, str(document), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for language, body in blocks(document):
        assert language in LANGUAGES, f"a block of {document.name} must say what it is, one of {sorted(LANGUAGES)}"
        if language == "console":
            assert body.startswith("$ "), f"a console block of {document.name} must start with a command:\n{body}"
            run_console(body, tmp_path)
        elif language == "python":
            run_python(body, names, document)
        elif language == "yaml" and (name := FILE_NAME.match(body)):
            (tmp_path / name["name"]).write_text(body, encoding="utf-8")


def test_the_command_line_reference_is_what_the_commands_say() -> None:
    written = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert written == reference(), "run 'just docs' to write docs/reference/cli.md anew"


@pytest.mark.parametrize("path", command_paths())
def test_every_command_is_shown_in_use(path: str) -> None:
    prose = [document.read_text(encoding="utf-8") for document in DOCUMENTS if document not in GENERATED]
    assert any(re.search(rf"\b{re.escape(path)}\b", text) for text in prose), f"no document but cli.md shows '{path}'"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    targets = LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8")))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_every_document_is_reachable_from_the_index() -> None:
    index = ROOT / "docs/index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text(encoding="utf-8"))}
    documents = set((ROOT / "docs").rglob("*.md")) - {index}
    assert sorted(str(path.relative_to(ROOT)) for path in documents - linked) == []


def test_continuous_integration_runs_the_two_commands_of_the_readme() -> None:
    """The script takes them out of the README by the same rule, so it cannot test anything else."""
    shell = [body.strip() for language, body in blocks(ROOT / "README.md") if language == "sh"]
    assert [body.count("\n") for body in shell] == [0, 0]
    listed = subprocess.run(
        [ROOT / ".ci/run", "--list"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert listed.stdout.splitlines() == shell
    assert "planner recommend" in shell[0]
    assert "pytest" in shell[1]


def refresh(document: Path) -> None:
    """Write the outputs of a document anew, but for those that leave something out."""
    text = document.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        for language, body in blocks(document):
            if language == "console":
                parts = []
                for command, shown in commands(body):
                    output = shell(command, folder).stdout
                    parts.append(
                        f"$ {command}\n{shown if '...' in shown else output.rstrip() + chr(10) * bool(output)}"
                    )
                text = text.replace(f"```console\n{body}```", f"```console\n{''.join(parts)}```")
            elif language == "python":
                run_python(body, names, document)
            elif language == "yaml" and (found := FILE_NAME.match(body)):
                (folder / found["name"]).write_text(body, encoding="utf-8")
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]] or DOCUMENTS:
        refresh(path)
