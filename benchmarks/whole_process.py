"""Whole-process time and memory of commands, medians of several runs.

Run as ``python benchmarks/whole_process.py [--runs N]``. Each command runs in a fresh process, its output thrown away;
user and system time and the largest resident set are the operating system's own accounting of the finished process.
Pin it to two cores where the machine has more (``taskset -c 0,1``).
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

COMMANDS = {
    "planner --help": ["--help"],
    "planner recommend": ["recommend"],
    "planner recommend --format json": ["recommend", "--format", "json"],
    "planner explain chat": ["explain", "chat"],
}
IMPORTS = "import numpy, highspy, pydantic"


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall: float
    cpu: float
    memory: float


def run(command: list[str]) -> Run:
    """Run a command once; memory in bytes."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    wall = time.perf_counter() - begin
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0)


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    cases = {IMPORTS: [sys.executable, "-c", IMPORTS]}
    cases |= {name: [sys.executable, "-m", "planner", *rest] for name, rest in COMMANDS.items()}
    print(f"{'command':44} {'wall':>8} {'cpu':>8} {'memory':>10}   median of {runs}, after one to warm up")
    for name, command in cases.items():
        run(command)
        several = [run(command) for _ in range(runs)]
        wall, cpu = (statistics.median(getattr(one, part) for one in several) for part in ("wall", "cpu"))
        memory = max(one.memory for one in several)
        print(f"{name:44} {wall:6.2f} s {cpu:6.2f} s {memory / 1e6:7.0f} MB")


if __name__ == "__main__":
    main()
