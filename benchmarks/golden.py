"""Golden plans: the decisions of every shipped scenario, held by tests/test_golden.py.

Run as ``python benchmarks/golden.py [--check]``: without ``--check`` the files in tests/golden/ are written anew, and
what changed is printed for review; with it they are only compared, and a difference is exit status 1.
"""

import argparse
import json
import sys
from difflib import unified_diff
from pathlib import Path

from planner.plan.answer import Recommendation
from planner.plan.recommend import recommend
from planner.spec.catalog import Catalog, resolve

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "golden"
DIGITS = 3
"""Significant digits of a cost: a decision, not a measurement."""


def decisions(answer: Recommendation) -> dict[str, object]:
    """Return what a plan decides: pools and their sizes, nodes and cost; no latencies."""
    return {
        "feasible": answer.feasible,
        "nodes_used": answer.cluster.nodes_used,
        "cost_per_hour": rounded(answer.cluster.cost_per_hour),
        "workloads": {
            plan.name: {
                "decision": plan.decision,
                "cost_per_hour": rounded(plan.cost.per_hour),
                "pools": {
                    pool.id: {
                        "hardware": pool.hardware,
                        "layout": pool.layout.model_dump(),
                        "replicas": pool.replicas,
                        "spare_replicas": pool.spare_replicas,
                    }
                    for pool in plan.pools
                },
            }
            for plan in answer.workloads
        },
    }


def rounded(value: float) -> float:
    """Round to ``DIGITS`` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def text(name: str) -> str:
    """Plan a shipped scenario and write its decisions down."""
    catalog = Catalog()
    return json.dumps(decisions(recommend(resolve(catalog.scenario(name), catalog))), indent=2) + "\n"


def difference(name: str) -> str:
    """Return what differs between the golden file of a scenario and its plan, old and new; empty where nothing does."""
    path = FOLDER / f"{name}.json"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    new = text(name)
    lines = unified_diff(old.splitlines(), new.splitlines(), f"{path.name} (golden)", f"{path.name} (now)", lineterm="")
    return "\n".join(lines)


def main() -> int:
    """Compare or write the golden files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    names = Catalog().names("scenario")
    changed = {name: shown for name in names if (shown := difference(name))}
    stale = [path for path in sorted(FOLDER.glob("*.json")) if path.stem not in names]
    for shown in changed.values():
        print(shown)
    for path in stale:
        print(f"{path.name} belongs to no scenario")
    if check:
        return 1 if changed or stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in changed:
        (FOLDER / f"{name}.json").write_text(text(name), encoding="utf-8")
    for path in stale:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
