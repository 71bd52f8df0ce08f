"""How long requests are: a constant, a lognormal, or a table of quantiles."""

from collections.abc import Mapping
from itertools import pairwise
from math import exp, floor, log, sqrt
from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.spec.card import Card
from planner.spec.misfit import Misfit, misfit

LONGEST = 1e9
"""Most tokens that a document may name."""
WIDEST = 10.0
"""Largest standard deviation of a logarithm: a median of 1 with a 99th percentile beyond ``LONGEST``."""
FARTHEST = 3.72
"""Standard score of one request in 10,000: how far a lognormal is taken to reach."""
Tokens = Annotated[float, Field(ge=1, le=LONGEST, examples=[1020])]
"""A length [tokens]."""
Mark = Annotated[float, Field(ge=0.01, le=LONGEST, examples=[900])]
"""A length in a table, which may be scaled to a mean beside it [tokens]."""
Percentile = Annotated[float, Field(ge=0, le=100, examples=[50])]


class Lengths(Card):
    """How many tokens: one of a constant, a lognormal or a table of quantiles."""

    constant: int | None = Field(default=None, gt=0, le=LONGEST, examples=[1024])
    """Every request has exactly so many tokens."""
    mean: Tokens | None = None
    """Mean tokens of a lognormal; beside ``quantiles``, the table is scaled to have it."""
    p50: Tokens | None = None
    """Median of a lognormal."""
    p90: Tokens | None = None
    """90th percentile of a lognormal."""
    p99: Tokens | None = None
    """99th percentile of a lognormal."""
    quantiles: dict[Percentile, Mark] | None = Field(default=None, examples=[{0: 10, 50: 900, 100: 8000}])
    """Tokens at each percentile (0 to 100), linear between them."""
    longest: Tokens | None = None
    """Where the tail of a lognormal is cut; what the model's context leaves where absent."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        marks = [self.p50, self.p90, self.p99]
        if self.constant is not None:
            if self.mean or self.quantiles or any(marks):
                raise ValueError("constant stands alone, for example {constant: 1024}")
        elif self.quantiles is not None:
            if any(marks):
                raise ValueError(
                    "quantiles replace p50, p90 and p99, for example {quantiles: {0: 10, 50: 900, 100: 8000}}"
                )
            levels = sorted(self.quantiles)
            if levels[:1] != [0] or levels[-1:] != [100]:
                raise ValueError("quantiles must run from 0 to 100, for example {0: 10, 50: 900, 100: 8000}")
            if any(self.quantiles[a] > self.quantiles[b] for a, b in pairwise(levels)):
                raise ValueError("quantiles must not fall, for example {0: 10, 50: 900, 100: 8000}")
            if self.mean is None and (mean := table_mean(self.quantiles)) < 1:
                says = f"the mean of the table, {mean:g} tokens, is below one token"
                raise misfit([Misfit(("quantiles",), f"{says}, for example {{0: 10, 50: 900, 100: 8000}}")])
        elif sum(mark is not None for mark in (self.mean, *marks)) != 2:  # noqa: PLR2004 - two fix a lognormal
            raise ValueError("give two of mean, p50, p90, p99, for example {p50: 1020, p90: 2735}, or quantiles")
        else:
            self._sound()
        if self.longest is not None and (self.constant is not None or self.quantiles is not None):
            raise ValueError("longest cuts a lognormal only: leave it out, or give {p50: 1020, p90: 2735}")
        return self

    def _sound(self) -> None:
        """Refuse a lognormal that no requests have."""
        centre, spread = self.lognormal()
        if spread > WIDEST:
            raise ValueError("no lengths spread so far; give quantiles, for example {0: 10, 50: 900, 100: 8000}")
        if (mean := exp(centre + spread**2 / 2)) < 1:
            msg = f"the mean length, {mean:g} tokens, is below one token, for example {{p50: 1020, p90: 2735}}"
            raise ValueError(msg)
        if self.longest is not None and self.longest < largest(self):
            problem = f"{self.longest:g} is below the {largest(self):g} tokens that are stated beside it"
            raise misfit([Misfit(("longest",), f"{problem}, for example longest: {2 * largest(self):g}")])

    def lognormal(self) -> tuple[float, float]:
        r"""Mean and standard deviation of the logarithm, of a lognormal through two of mean, p50, p90, p99.

        The q-quantile is :math:`e^{\mu + z_q \sigma}` and the mean :math:`e^{\mu + \sigma^2 / 2}`. A mean beside a
        quantile above the median fits two lognormals; the less spread one is meant.

        Raises
        ------
        ValueError
            Where no lognormal has both, or the lengths have another form.

        Examples
        --------
        >>> [round(x, 3) for x in Lengths(p50=1000, p90=2718.28).lognormal()]
        [6.908, 0.78]

        """
        marks = {0.5: self.p50, 0.9: self.p90, 0.99: self.p99}
        from statistics import NormalDist  # noqa: PLC0415 - brings fractions, decimals and hashes along

        points = [(NormalDist().inv_cdf(level), log(mark)) for level, mark in marks.items() if mark is not None]
        no_such = "no lognormal has both: a percentile may be exp(z^2 / 2) times the mean at most; give quantiles"
        if self.mean is None and len(points) == 2:  # noqa: PLR2004 - a line through two points
            (low, below), (high, above) = points
            spread = (above - below) / (high - low)
            centre = below - low * spread
        elif self.mean is not None and len(points) == 1:
            ((z, mark),) = points
            root = z * z - 2 * (mark - log(self.mean))
            if root < 0:
                raise ValueError(no_such)
            spread = sqrt(root) if z == 0 else z - sqrt(root)
            centre = log(self.mean) - spread**2 / 2
        else:
            raise ValueError("not a lognormal: give two of mean, p50, p90, p99, for example {p50: 1020, p90: 2735}")
        if spread < 0:
            raise ValueError(
                "percentiles must rise, with p50 below the mean and p90 above it, for example {p50: 1020, p90: 2735}"
            )
        return centre, spread


class RequestLengths(Card):
    """Tokens of a request."""

    input: Lengths
    output: Lengths


def largest(lengths: Lengths) -> float:
    """Return the largest length that a document states [tokens]; the tail of a lognormal is not stated.

    >>> largest(Lengths(p50=1020, p90=2735)), largest(Lengths(quantiles={0: 0.5, 100: 8000}))
    (2735.0, 8000.0)
    """
    if lengths.constant is not None:
        return float(lengths.constant)
    if lengths.quantiles:
        top = max(lengths.quantiles.values())
        return top if lengths.mean is None else top * lengths.mean / table_mean(lengths.quantiles)
    stated = (lengths.mean, lengths.p50, lengths.p90, lengths.p99)
    return max(mark for mark in stated if mark is not None)


def reach(lengths: Lengths) -> float:
    """Return how long requests are at most [tokens]: one in 10,000 of a lognormal may be longer.

    >>> reach(Lengths(constant=7)), round(reach(Lengths(p50=1000, p90=8000)))
    (7.0, 418242)
    """
    if lengths.constant is not None or lengths.quantiles is not None:
        return largest(lengths)
    centre, spread = lengths.lognormal()
    return min(max(exp(centre + FARTHEST * spread), largest(lengths)), lengths.longest or LONGEST)


def within(lengths: RequestLengths, context: int) -> RequestLengths:
    """Cut tails that nobody states, so that input and output together fit into a context of ``context`` tokens.

    Engines refuse longer requests. Both tails give way in proportion to what they reach beyond the stated lengths.

    >>> cut = within(RequestLengths(input=Lengths(p50=1000, p90=8000), output=Lengths(constant=1072)), 131_072)
    >>> cut.input.longest, cut.output.longest
    (130000.0, None)
    """
    sides = (lengths.input, lengths.output)
    stated, far = [largest(side) for side in sides], [reach(side) for side in sides]
    spare = context - sum(stated)
    if sum(far) <= context or spare < 0:
        return lengths
    kept = spare / (sum(far) - sum(stated))
    cut = [
        # The margin is for rounding: a tail that ends at a whole token keeps it.
        side.model_copy(update={"longest": max(base, float(floor(base + kept * (end - base) + 1e-6)))})
        if end > base
        else side
        for side, base, end in zip(sides, stated, far, strict=True)
    ]
    return RequestLengths.model_construct(input=cut[0], output=cut[1])


def table_mean(quantiles: Mapping[float, float]) -> float:
    """Return the mean of a table of quantiles, linear between them.

    >>> table_mean({0: 10, 50: 100, 100: 1000})
    302.5
    """
    pairs = pairwise(sorted(quantiles))
    return sum((high - low) * (quantiles[low] + quantiles[high]) / 2 for low, high in pairs) / 100
