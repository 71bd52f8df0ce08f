"""How far measurements lie from predictions, by what was measured: the 80 % bands that every answer carries."""

from typing import Annotated

from pydantic import Field

from planner.spec.calibration import FEWEST, Calibration
from planner.spec.card import Card, read_document
from planner.spec.folders import shipped
from planner.spec.observation import Kind, figure

Ratio = Annotated[float, Field(gt=0, le=100)]
WIDE = (0.4, 2.5)
"""Band of what nobody has measured yet."""


class BandRow(Card):
    """Residuals of comparable rows, left out of the fit when they were predicted."""

    kind: Kind
    metric: str
    """Metric, without its percentile: ``ttft``, ``tpot``, ``output_tokens_per_s``."""
    family: str | None = None
    """Hardware family; absent: all."""
    sparse: bool | None = None
    """Whether the model has experts; absent: both."""
    rows: Annotated[int, Field(ge=1)]
    """Rows that it comes from."""
    low: Ratio
    """Measured over predicted, 10th percentile."""
    high: Ratio
    """Measured over predicted, 90th percentile."""


class Bands(Card):
    """Bands, the narrower circles of comparison first."""

    sources: dict[str, str] = Field(min_length=1)
    bands: tuple[BandRow, ...] = ()

    def near(self, calibration: Calibration | None, model: str, family: str) -> "Bands":
        """Return bands with those of the user's own measurements first, where enough of a model were made."""
        if calibration is None or model not in calibration.valid.models:
            return self
        own = [
            BandRow(kind=one.kind, metric=one.metric, family=family, rows=one.rows, low=one.low, high=one.high)
            for one in calibration.residuals
            if one.rows >= FEWEST
        ]
        return self.model_copy(update={"bands": (*own, *self.bands)})

    def measured(self, kind: str, metric: str, family: str) -> bool:
        """Whether anything comparable was measured on accelerators of this family."""
        return any((row.kind, row.metric, row.family) == (kind, figure(metric), family) for row in self.bands)

    def of(self, kind: str, metric: str, family: str, *, sparse: bool) -> tuple[float, float]:
        """Ratios of measured to predicted between which 80 % of comparable measurements lie; wide without any."""
        for row in self.bands:
            fits = row.kind == kind and row.metric == figure(metric)
            if fits and row.family in (None, family) and row.sparse in (None, sparse):
                return row.low, row.high
        return WIDE


def shipped_bands() -> Bands:
    """Return the bands that planner ships."""
    return read_document(shipped() / "hardware" / "measurements" / "bands.yaml", Bands)
