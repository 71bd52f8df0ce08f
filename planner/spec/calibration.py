"""What a card says of the user's own measurements that it was fitted on: how well, and over what range."""

from typing import Annotated

from pydantic import Field

from planner.spec.card import Card
from planner.spec.observation import Kind

Range = tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]]
"""Least and largest value that was measured."""
FEWEST = 10
"""Rows that a band must come from."""


class CalibratedFactor(Card):
    """One factor on the times of the card that the calibration started from."""

    name: str
    """What it stretches, for example ``gemm_memory``."""
    format: str | None = None
    """Number format that it is for; absent: the whole card."""
    factor: Annotated[float, Field(gt=0)]
    """Above 1 it takes longer than the card before said."""
    uncertainty: Annotated[float, Field(ge=0)]
    """Standard deviation of its logarithm."""


class Residual(Card):
    """How far the measurements of one kind and metric lie from predictions, each left out when it was predicted."""

    kind: Kind
    metric: str
    """Metric, without its percentile."""
    rows: Annotated[int, Field(ge=1)]
    median_ape: Annotated[float, Field(ge=0)]
    """Median of |predicted / measured - 1|."""
    p90_ape: Annotated[float, Field(ge=0)]
    """90th percentile of it."""
    bias: float
    """Median of ln(predicted / measured)."""
    low: Annotated[float, Field(gt=0)]
    """Measured over predicted, 10th percentile, widened for how few they are."""
    high: Annotated[float, Field(gt=0)]
    """Measured over predicted, 90th percentile, widened for how few they are."""


class Validity(Card):
    """What was measured. Beyond it the card extrapolates."""

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    weights: tuple[str, ...]
    """Number formats of the weights."""
    kv: tuple[str, ...]
    """Number formats of the KV cache."""
    tp: Range
    pp: Range
    ep: Range
    input: Range
    """Mean input [tokens]."""
    output: Range
    """Mean output [tokens]."""
    in_flight: Range
    """Requests in flight in one replica, or sequences of a batch; 0 to 0 where only rates are known."""

    def beyond(self, **at: float | str) -> tuple[str, ...]:
        """Say what of a point lies outside, in words.

        >>> measured = Validity(models=("m",), weights=("bf16",), kv=("bf16",), tp=(1, 4), pp=(1, 1), ep=(1, 1),
        ...                     input=(100, 2000), output=(64, 512), in_flight=(1, 64))
        >>> measured.beyond(models="m", tp=8, input=4000.0)
        ('TP 8 is outside 1 to 4', 'input 4000 is outside 100 to 2000')
        """
        out = []
        for name, value in at.items():
            word = _WORDS.get(name, name)
            known = getattr(self, name)
            if isinstance(value, str):
                if value not in known:
                    out.append(f"{word} {value} is not among {', '.join(known)}")
            elif known[1] > 0 and not known[0] <= value <= known[1]:
                out.append(f"{word} {value:g} is outside {known[0]:g} to {known[1]:g}")
        return tuple(out)


_WORDS = {
    "models": "model",
    "kv": "KV cache",
    "tp": "TP",
    "pp": "PP",
    "ep": "EP",
    "in_flight": "requests in flight",
}


class Calibration(Card):
    """How a card came from measurements of one site."""

    name: str
    """What its author calls it."""
    files: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the files."""
    rows: Annotated[int, Field(ge=1)]
    """Measurements that it was fitted on."""
    start: str
    """Card that the factors multiply, ``HARDWARE--ENGINE``."""
    factors: tuple[CalibratedFactor, ...]
    """Those that the measurements identify; all else is as on the card before."""
    residuals: tuple[Residual, ...]
    valid: Validity
