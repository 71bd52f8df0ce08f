"""Write ``tests/golden/accuracy/development.json``: the median errors that a change may not worsen.

Run ``python -m benchmarks.golden_accuracy`` after looking at what changed. The table is read from ``$PLANNER_SHARED``
(default: ``shared`` beside the repository).
"""

import json
import os
from pathlib import Path

from planner.check.accuracy import accuracy
from planner.intake.observations import read
from planner.spec.bands import shipped_bands
from planner.spec.catalog import Catalog

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "accuracy" / "development.json"


def main() -> None:
    """Write the file, and print what it replaces."""
    shared = Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared"))
    answer = accuracy(read(shared / "measured" / "development.csv"), Catalog(), shipped_bands(), version="golden")
    new = {f"{group.by.kind} {group.by.metric}": round(group.median_ape, 4) for group in answer.groups}
    old = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.is_file() else {}
    for key in sorted(old | new):
        print(f"{key:60s} {old.get(key, '-'):>8} -> {new.get(key, '-'):>8}")
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(json.dumps(new, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
