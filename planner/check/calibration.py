"""The answer of ``calibrate``. Apart from what makes it, so that other answers need not load what a fit takes."""

from planner.plan.predicted import Part
from planner.spec.calibration import Validity


class FactorFound(Part):
    """A factor on the times of the card that the calibration started from."""

    name: str
    format: str | None
    """Number format that it is for; null: the whole card."""
    identified: bool
    """Whether the measurements at least halve what was uncertain; else the card stays as it was here."""
    factor: float
    """Above 1 it takes longer; 1 where it is not identified."""
    uncertainty: float
    """Standard deviation of its logarithm."""
    narrowed: float
    """That over what it was beforehand."""
    run: str | None
    """Run that would tell most of it, where it is not identified; null where none that was thought of does."""


class ErrorFound(Part):
    """Errors of one kind and metric. An absolute error is |predicted / measured - 1|."""

    kind: str
    metric: str
    rows: int
    before: float
    """Median absolute error by the card that it started from."""
    after: float
    """Median absolute error by the new card, on what it was fitted on."""
    left_out: float
    """Median absolute error by fits without the run that a row belongs to."""
    left_out_p90: float
    """90th percentile of that."""
    bias: float
    """Median of ln(predicted / measured), left out."""


class CalibrationFound(Part):
    """The answer of ``calibrate``."""

    schema_version: str
    planner_version: str
    name: str
    hardware: str
    engine: str
    start: str
    """Card that the factors multiply."""
    files: tuple[str, ...]
    rows: int
    """Measurements that were fitted on."""
    unused: dict[str, int]
    """The others, by reason."""
    flags_unknown: tuple[str, ...]
    """Flags of the serving commands that are not known, and may have changed what was measured."""
    factors: tuple[FactorFound, ...]
    errors: tuple[ErrorFound, ...]
    range: Validity
    """What was measured: beyond it the card extrapolates."""
    written: str
    """File of the card."""
