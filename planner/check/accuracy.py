"""How far predictions are from measurements: every row of a table, and what they come to by group."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from planner.check.expression import Expressed, InexpressibleError, express
from planner.check.kinds import predict
from planner.numeric import Floats
from planner.plan.predicted import Part
from planner.spec.bands import Bands
from planner.spec.catalog import Catalog
from planner.spec.observation import Observation

By = Literal["hardware", "model", "engine", "kind", "source"]
"""What rows may be grouped by, beside kind and metric."""
CLOSE = 0.2
"""Relative error up to which a prediction counts as close."""
UNFIT = "does not fit in memory"


class GroupKey(Part):
    """What the rows of a group have in common."""

    kind: str
    metric: str
    engine: str | None = None
    hardware: str | None = None
    model: str | None = None
    source: str | None = None


class AccuracyGroup(Part):
    """Errors of a group of rows. An absolute percentage error is |predicted / measured - 1|."""

    by: GroupKey
    n: int
    """Rows."""
    configurations: int
    """Groups of rows of one source, engine, model, weights format, accelerator, TP and EP."""
    median_ape: float
    """Median of the absolute errors of the rows."""
    p90_ape: float
    """90th percentile of them."""
    median_ape_by_configuration: float
    """Median over configurations of the median error of each, so that much-measured ones weigh no more."""
    bias: float
    """Median of ln(predicted / measured); above zero predictions are too large."""
    within_20: float
    """Share of rows whose error is at most 20 %."""
    band_coverage: float
    """Share of rows inside the 80 % band of the prediction."""


class AccuracyPoint(Part):
    """One row: measured and predicted, in the row's own unit, with the 80 % band."""

    id: str
    kind: str
    metric: str
    source: str
    engine: str
    hardware: str
    model: str
    measured: float
    predicted: float
    low: float
    high: float


class Accuracy(Part):
    """The answer of ``accuracy``."""

    schema_version: str
    planner_version: str
    rows: int
    """Rows of the table."""
    expressible: int
    """Rows that could be predicted."""
    not_expressible: dict[str, int]
    """The others, by reason."""
    groups: tuple[AccuracyGroup, ...]
    points: tuple[AccuracyPoint, ...]


def expressed(rows: Sequence[Observation], catalog: Catalog) -> tuple[list[Expressed], Counter[str]]:
    """Express rows in planner's terms; count those that cannot be, by reason."""
    out, why = [], Counter[str]()
    for row in rows:
        try:
            out.append(express(row, catalog))
        except InexpressibleError as reason:
            why[str(reason)] += 1
    return out, why


def accuracy(
    rows: Sequence[Observation], catalog: Catalog, bands: Bands, by: Sequence[By] = (), *, version: str
) -> Accuracy:
    """Predict all rows and sum up the errors by kind and metric, and by what ``by`` names."""
    able, why = expressed(rows, catalog)
    values = predict(able)
    fits = np.isfinite(values)
    if not fits.all():
        why[UNFIT] = int(np.count_nonzero(~fits))
    able = [one for one, good in zip(able, fits, strict=True) if good]
    values = values[fits]
    points = tuple(_point(one, float(value), bands) for one, value in zip(able, values, strict=True))
    return Accuracy(
        schema_version="1",
        planner_version=version,
        rows=len(rows),
        expressible=len(points),
        not_expressible=dict(sorted(why.items())),
        groups=tuple(_groups(able, points, by)),
        points=points,
    )


def _point(one: Expressed, value: float, bands: Bands) -> AccuracyPoint:
    row, of = one.row, one.configuration
    family = of.hardware.family
    near = bands.near(of.efficiency.calibration, of.model.name, family)
    low, high = near.of(row.kind, row.metric, family, sparse=of.model.sparse)
    return AccuracyPoint(
        id=row.id,
        kind=row.kind,
        metric=row.metric,
        source=row.source,
        engine=of.family,
        hardware=of.hardware.name,
        model=of.model.name,
        measured=row.value,
        predicted=value,
        low=value * low,
        high=value * high,
    )


def configuration_key(one: Expressed) -> tuple[object, ...]:
    """Say what makes rows of one configuration: they err together."""
    row = one.row
    return row.source, row.engine, row.model, row.weights_dtype, row.hardware, row.tp, row.ep


def _groups(able: Sequence[Expressed], points: Sequence[AccuracyPoint], by: Sequence[By]) -> Iterator[AccuracyGroup]:
    names = [name for name in ("engine", "hardware", "model", "source") if name in by]
    places: dict[tuple[str, ...], list[int]] = {}
    for place, point in enumerate(points):
        key = (point.kind, point.metric, *(getattr(point, name) for name in names))
        places.setdefault(key, []).append(place)
    for key, some in sorted(places.items()):
        chosen = [points[place] for place in some]
        ratio = np.array([point.predicted / point.measured for point in chosen])
        error = np.abs(ratio - 1.0)
        inside = [point.low <= point.measured <= point.high for point in chosen]
        labels = [configuration_key(able[place]) for place in some]
        yield AccuracyGroup(
            by=GroupKey(kind=key[0], metric=key[1], **dict(zip(names, key[2:], strict=True))),
            n=len(some),
            configurations=len(set(labels)),
            median_ape=float(np.median(error)),
            p90_ape=float(np.percentile(error, 90.0)),
            median_ape_by_configuration=_by_label(error, labels),
            bias=float(np.median(np.log(ratio))),
            within_20=float(np.mean(error <= CLOSE)),
            band_coverage=float(np.mean(inside)),
        )


def _by_label(error: Floats, labels: Sequence[object]) -> float:
    found: dict[object, list[float]] = {}
    for one, label in zip(error.tolist(), labels, strict=True):
        found.setdefault(label, []).append(one)
    return float(np.median([np.median(some) for some in found.values()]))
