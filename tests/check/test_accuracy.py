"""Accuracy: sums over rows, and how good it must stay."""

import json
from pathlib import Path

import numpy as np
import pytest

from planner.check.accuracy import Accuracy, accuracy
from planner.intake.observations import read
from planner.spec.bands import Bands
from planner.spec.card import read_document
from planner.spec.catalog import Catalog, shipped
from planner.spec.observation import Observation

GOLDEN = Path(__file__).parent.parent / "golden" / "accuracy" / "development.json"
"""Median absolute error by kind and metric, written by ``python -m benchmarks.golden_accuracy``."""
POINT = 0.01


def judged(rows: tuple[Observation, ...], *by: str) -> Accuracy:
    bands = read_document(shipped() / "hardware" / "measurements" / "bands.yaml", Bands)
    return accuracy(rows, Catalog(), bands, by, version="test")  # type: ignore[arg-type]


def test_the_shipped_table_is_summed_up_correctly() -> None:
    answer = judged(read(shipped() / "hardware" / "measurements" / "published.csv"), "engine")
    assert answer.rows == answer.expressible + sum(answer.not_expressible.values())
    assert sum(group.n for group in answer.groups) == answer.expressible == len(answer.points)
    for group in answer.groups:
        by = group.by
        chosen = [p for p in answer.points if (p.kind, p.metric, p.engine) == (by.kind, by.metric, by.engine)]
        errors = [abs(p.predicted / p.measured - 1) for p in chosen]
        assert group.n == len(chosen)
        assert group.median_ape == pytest.approx(float(np.median(errors)))
        assert group.within_20 == pytest.approx(np.mean([error <= 0.2 for error in errors]))
        assert group.band_coverage == pytest.approx(np.mean([p.low <= p.measured <= p.high for p in chosen]))
    assert all(p.low <= p.high and p.predicted > 0 for p in answer.points)


@pytest.mark.shared
def test_no_kind_gets_worse(shared: Path) -> None:
    old = json.loads(GOLDEN.read_text("utf-8"))
    answer = judged(read(shared / "measured" / "development.csv"))
    new = {f"{group.by.kind} {group.by.metric}": group.median_ape for group in answer.groups}
    worse = {key: (old[key], new.get(key)) for key in old if new.get(key, np.inf) > old[key] + POINT}
    assert not worse, f"(old, new) medians: {worse}"
    assert new.keys() == old.keys()


@pytest.mark.shared
def test_nearly_every_row_that_states_a_layout_is_expressible(shared: Path) -> None:
    rows = read(shared / "measured" / "development.csv")
    stated = [row for row in rows if row.tp is not None]
    assert judged(tuple(stated)).expressible >= 0.9 * len(stated)
