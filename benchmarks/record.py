"""Run the benchmarks and write what they print into docs/explanation/performance.md.

Run as ``python benchmarks/record.py [--quick]`` on a quiet machine. Everything between the two marks of the page is
written anew: the machine, the versions, and each command with its output. ``--quick`` runs each benchmark once at a
small size, to try the script; use it with ``--page`` and another file.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- begin: written by benchmarks/record.py -->\n", "<!-- end -->\n"
COMMANDS = (
    ("whole_process.py",),
    ("evaluations.py",),
    ("choice_scale.py",),
    ("plan_scale.py", "--runs", "3"),
)
"""What is recorded, in this order."""
QUICK = (("evaluations.py", "--runs", "1"), ("plan_scale.py", "--workloads", "6", "--nodes", "24", "--runs", "1"))
"""What ``--quick`` runs."""


def machine() -> str:
    """Processor, cores and versions, in one line."""
    models = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in (models.read_text().splitlines() if models.exists() else ())
        if "model name" in line
    ]
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pydantic"))
    cores = f"{os.cpu_count()} cores"
    return f"{names[0] if names else platform.machine()}, {cores}, Python {platform.python_version()}, {packages}"


def record(commands: Sequence[Sequence[str]]) -> str:
    """Run the commands one after another and write a block for each."""
    out = [f"Measured on: {machine()}.\n"]
    for script, *arguments in commands:
        done = subprocess.run(  # noqa: S603 - our own scripts
            [sys.executable, HERE / script, *arguments], capture_output=True, text=True, check=True
        )
        shown = " ".join(("python", f"benchmarks/{script}", *arguments))
        out.append(f"`{shown}`\n\n```text\n{done.stdout}```\n")
    return "\n".join(out)


def main(arguments: Sequence[str] | None = None) -> None:
    """Replace the recorded part of the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    before, found, rest = options.page.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        message = f"{options.page} lacks the marks {BEGIN.strip()!r} and {END.strip()!r}"
        raise SystemExit(message)
    measured = record(QUICK if options.quick else COMMANDS)
    options.page.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
