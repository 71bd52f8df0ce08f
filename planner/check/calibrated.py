"""The card that a calibration makes, and what there is to say of it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel
from scipy.stats import norm, t

from planner.check.calibrate import Calibrated, Moved
from planner.check.calibration import CalibrationFound, ErrorFound, FactorFound
from planner.check.factors import BY_CACHE, BY_FORMAT, OVERHEADS, Key
from planner.check.material import Material, Target
from planner.numeric import Floats
from planner.spec.calibration import CalibratedFactor, Calibration, Residual, Validity
from planner.spec.efficiency import EfficiencyCard, Fit
from planner.spec.observation import figure

SOURCE = "calibration"
DIGITS = 4
"""Significant digits of the numbers of a calibrated card."""
LEVELS = (0.1, 0.9)
"""Ends of the 80 % band."""
WIDEST_GROUP = 5.0
NARROWEST_GROUP = 0.01


def finished(found: Calibrated, of: Target, given: Material, name: str) -> EfficiencyCard:
    """Return the card: its numbers rounded, the fitted groups marked as measured, the calibration inside."""
    touched = [one for one in found.moved if one.identified]
    said = f"{name}: factors on {of.start}, fitted on {len(found.rows)} measurements of {', '.join(given.files)}"
    ends = np.quantile(np.abs(np.expm1(found.left)), LEVELS[1] - LEVELS[0])
    mark = {
        "source": SOURCE,
        "basis": "measured",
        "band": round(float(np.clip(ends, NARROWEST_GROUP, WIDEST_GROUP)), 2),
    }
    card = found.card.model_copy(
        update={
            "version": of.version or found.card.version,
            "sources": {**found.card.sources, SOURCE: said},
            "calibration": Calibration(
                name=name,
                files=given.files,
                rows=len(found.rows),
                start=of.start,
                factors=tuple(_factor(one) for one in touched),
                residuals=tuple(_residuals(found)),
                valid=_range(found),
            ),
        }
    )
    document = _short(card).model_dump(mode="json", exclude_none=True)
    for one in touched:
        for group in _groups(document, one.key):
            group.update(mark)
    return EfficiencyCard.model_validate(document)


def answer(found: Calibrated, card: EfficiencyCard, given: Material, version: str, written: str) -> CalibrationFound:
    """Return the answer of ``calibrate``."""
    calibration = card.calibration
    if calibration is None:
        msg = "the card holds no calibration"
        raise ValueError(msg)
    return CalibrationFound(
        schema_version="1",
        planner_version=version,
        name=calibration.name,
        hardware=card.hardware,
        engine=card.engine,
        start=calibration.start,
        files=given.files,
        rows=len(found.rows),
        unused=found.unused,
        flags_unknown=given.unknown,
        factors=tuple(
            FactorFound(
                name=one.key[0],
                format=one.key[1] or None,
                identified=one.identified,
                factor=one.factor,
                uncertainty=one.uncertainty,
                narrowed=one.narrowed,
                run=one.run.words if one.run else None,
            )
            for one in found.moved
        ),
        errors=tuple(_errors(found)),
        range=calibration.valid,
        written=written,
    )


def _factor(one: Moved) -> CalibratedFactor:
    return CalibratedFactor(name=one.key[0], format=one.key[1] or None, factor=one.factor, uncertainty=one.uncertainty)


def _alike(found: Calibrated) -> Iterator[tuple[str, str, list[int]]]:
    """Places of the rows by kind and metric."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(found.rows):
        places.setdefault((one.row.kind, figure(one.row.metric)), []).append(place)
    for (kind, metric), some in sorted(places.items()):
        yield kind, metric, some


def _errors(found: Calibrated) -> Iterator[ErrorFound]:
    for kind, metric, places in _alike(found):
        before, after, left = (np.abs(np.expm1(one[places])) for one in (found.before, found.after, found.left))
        yield ErrorFound(
            kind=kind,
            metric=metric,
            rows=len(places),
            before=float(np.median(before)),
            after=float(np.median(after)),
            left_out=float(np.median(left)),
            left_out_p90=float(np.quantile(left, 0.9)),
            bias=float(np.median(found.left[places])),
        )


def _residuals(found: Calibrated) -> Iterator[Residual]:
    for kind, metric, places in _alike(found):
        left = found.left[places]
        error = np.abs(np.expm1(left))
        low, high = band(-left)
        yield Residual.model_validate(
            {
                "kind": kind,
                "metric": metric,
                "rows": len(places),
                "median_ape": float(np.median(error)),
                "p90_ape": float(np.quantile(error, 0.9)),
                "bias": float(np.median(left)),
                "low": low,
                "high": high,
            }
        )


def band(log: Floats) -> tuple[float, float]:
    """Return the ends of the 80 % band of ln(measured / predicted), as factors; few rows make it wider.

    Quantiles of a sample lie within the spread of one more value; the ratio of the normal's prediction interval to its
    known quantile, ``t(0.9, n - 1) sqrt(1 + 1 / n) / z(0.9)``, widens them (Geisser, Predictive Inference, 1993, 2.2).

    >>> [round(end, 3) for end in band(np.log([0.8, 0.9, 1.0, 1.1, 1.25]))]
    [0.794, 1.253]
    """
    middle = float(np.median(log))
    low, high = np.quantile(log, LEVELS)
    count = len(log)
    wide = float(t.ppf(LEVELS[1], max(count - 1, 1)) * np.sqrt(1.0 + 1.0 / count) / norm.ppf(LEVELS[1]))
    return float(np.exp(middle + (low - middle) * wide)), float(np.exp(middle + (high - middle) * wide))


def _range(found: Calibrated) -> Validity:
    """Say what was measured."""
    of = [one.configuration for one in found.rows]

    def ends(values: Sequence[float]) -> tuple[float, float]:
        return (float(min(values)), float(max(values))) if values else (0.0, 0.0)

    loops = [one.load.circulating for one in found.rows if one.row.concurrency is not None]
    return Validity(
        models=tuple(sorted({one.model.name for one in of})),
        weights=tuple(sorted({str(one.weights) for one in of})),
        kv=tuple(sorted({str(one.kv) for one in of})),
        tp=ends([one.layout[0] for one in of]),
        pp=ends([one.layout[1] for one in of]),
        ep=ends([one.layout[3] for one in of]),
        input=ends([one.load.input for one in found.rows]),
        output=ends([one.load.output for one in found.rows]),
        in_flight=ends(loops),
    )


def _groups(document: dict[str, object], key: Key) -> Iterator[dict[str, object]]:
    """Yield the groups of numbers of a card that a factor moves."""
    name, form = key

    def inner(of: object, *path: str) -> dict[str, object]:
        for step in path:
            of = of.get(step) if isinstance(of, dict) else None
        return of if isinstance(of, dict) else {}

    formats = inner(document, "formats")
    if name in BY_FORMAT or name in BY_CACHE:
        kernel = name.rsplit("_", 1)[0] if name in BY_FORMAT else name
        chosen = [inner(formats, block, kernel) for block in formats if block == form]
    elif name == "kernel":
        # One factor on the fixed costs of all kernels makes none of their groups a measured one.
        chosen = []
    elif name in OVERHEADS:
        chosen = [inner(document, "overhead")]
    else:
        chosen = [inner(document, "collectives", one) for one in inner(document, "collectives")]
    return (group for group in chosen if set(Fit.model_fields) <= set(group))


def _short(value: Any) -> Any:  # noqa: ANN401 - whatever a card is made of
    """Round all floats of a card."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _short(getattr(value, name)) for name in type(value).model_fields})
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_short(one) for one in value)
    return value
