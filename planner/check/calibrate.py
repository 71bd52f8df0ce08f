"""Calibration: from a site's own measurements to an efficiency card, and what they do not tell.

The factors of :mod:`planner.check.factors` are fitted on the rows, each drawn towards the card that it starts from. A
factor counts as identified where the rows at least halve the standard deviation that it has beforehand; the others
stay as they are, worst first, so that of two that trade off against each other one remains (Gutenkunst et al., PLoS
Computational Biology 2007, on sloppy parameters). The noise is scaled to what the residuals show.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.check.accuracy import UNFIT
from planner.check.experiment import Candidate, Run, experiments, telling
from planner.check.expression import Expressed
from planner.check.factors import BY_CACHE, CLASSES, LOOSE, WHOLE, Key, stretched
from planner.check.fit import BUMP, Fit, noise_of
from planner.check.kinds import predict
from planner.errors import InputError
from planner.numeric import Bools, Floats
from planner.spec.efficiency import EfficiencyCard

WIDTH = 0.4
"""Standard deviation of the logarithm of a factor whose class is not loose: how far engines of one accelerator family
lie apart (the effects of `both`, `cell` and `hardware` of benchmarks/fit_efficiency.py together)."""
CARRIED = 2.0
"""How much wider it is where the card to start from is of other hardware."""
HALVED = 0.5
"""Standard deviation after over before, up to which a factor counts as identified."""
ROUNDS = 6
STILL = 1e-3
"""Change of the logarithm of a factor that ends a fit."""
QUIETEST = 0.25
"""Least scale of the noise: below it the model's own faults begin, which no repetition lessens."""
LOUDEST = 3.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A factor and what became of it."""

    key: Key
    factor: float
    """On times."""
    uncertainty: float
    """Standard deviation of its logarithm, given those that stay."""
    narrowed: float
    """That over what it was beforehand."""
    identified: bool
    run: Run | None
    """What would identify it, where it is not; None where nothing does that was thought of."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A fitted card and the figures behind it."""

    card: EfficiencyCard
    """Without its calibration, which :mod:`planner.check.calibrated` writes."""
    moved: tuple[Moved, ...]
    rows: tuple[Expressed, ...]
    """Rows that were fitted on."""
    before: Floats
    """ln(predicted / measured) by the card that it started from, (rows,)."""
    after: Floats
    """The same by the new card."""
    left: Floats
    """The same by fits without the run that a row belongs to."""
    unused: dict[str, int]
    """Rows that were not fitted on, by reason."""


class _CardFit(Fit):
    """The fit of one card's factors to rows of one accelerator and engine."""

    def __init__(self, card: EfficiencyCard, rows: Sequence[Expressed], scale: float) -> None:
        self.card = card
        self.keys = keys(card, rows)
        self.free = np.ones(len(self.keys), bool)
        prior = np.array([scale * WIDTH * LOOSE.get(name, 1.0) for name, _ in self.keys])
        super().__init__(rows, np.ones(len(rows), bool), 1.0 / prior**2)

    def on(self, rows: Sequence[Expressed], bump: int | None = None) -> Floats:
        """Logarithms of the predictions of rows with the values as they are, one of them moved a little."""
        value = self.value.copy()
        if bump is not None:
            value[bump] += BUMP
        card = stretched(self.card, dict(zip(self.keys, value.tolist(), strict=True)))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.log(predict([_with(one, card) for one in rows])))

    def design(self, base: Floats) -> Floats:
        """Return the derivative of every prediction by every value; nought for those that stay."""
        return self.slopes(self.rows, base) * self.free

    def predicted(self) -> Floats:
        """Logarithm of every prediction with the values as they are."""
        return self.on(self.rows)

    def slopes(self, rows: Sequence[Expressed], base: Floats) -> Floats:
        """Return the derivative of predictions of rows by every value, whether it stays or not, (rows, values)."""
        columns = [(self.on(rows, number) - base) / BUMP for number in range(len(self.keys))]
        return np.nan_to_num(np.array(columns).T)

    def spread(self, design: Floats, error: Floats) -> Floats:
        """Return the standard deviation of each value, given those that stay, (values,)."""
        everything = np.ones(len(error), bool)
        # Given the others a value that stays is as uncertain as beside those that are free.
        out = np.empty(len(self.keys))
        slopes = self.normal(design, error, everything)
        for number in range(len(self.keys)):
            chosen = np.flatnonzero(self.free | (np.arange(len(self.keys)) == number))
            covariance = np.linalg.inv(slopes[np.ix_(chosen, chosen)])
            out[number] = np.sqrt(covariance[chosen == number, chosen == number][0])
        return out


def keys(card: EfficiencyCard, rows: Sequence[Expressed]) -> tuple[Key, ...]:
    """Return the factors that rows could tell of: those of a whole card, and of the formats that were measured."""
    weights = {one.configuration.kernels for one in rows}
    caches = {str(one.configuration.kv) for one in rows}
    known = {str(name) for name in card.formats}
    sparse = any(one.configuration.model.sparse for one in rows)
    out: list[Key] = []
    for name in CLASSES:
        if name in WHOLE:
            out.append((name, ""))
        elif sparse or not name.startswith("experts"):
            out += [(name, form) for form in sorted(known & (caches if name in BY_CACHE else weights))]
    return tuple(out)


def _with(one: Expressed, card: EfficiencyCard) -> Expressed:
    return replace(one, configuration=replace(one.configuration, efficiency=card))


def calibrate(
    rows: Sequence[Expressed], card: EfficiencyCard, unused: Counter[str], *, carried: bool = False
) -> Calibrated:
    """Fit a card to measurements of its accelerator and engine.

    Parameters
    ----------
    rows
        Measurements, with ``card`` as their efficiencies.
    card
        What to start from; factors that the rows do not identify stay as it says.
    unused
        Rows that were left out before, by reason.
    carried
        Whether ``card`` was made for other hardware.

    Raises
    ------
    InputError
        Where no row can be predicted, or none of the factors is identified.

    """
    scale = CARRIED if carried else 1.0
    first = _CardFit(card, rows, scale)
    base = first.predicted()
    fits = np.isfinite(base)
    unused = unused + Counter({UNFIT: int(np.count_nonzero(~fits))})
    # The order of the rows must not matter, not even by rounding.
    order = sorted(np.flatnonzero(fits).tolist(), key=lambda place: repr((rows[place].row, rows[place].load)))
    rows = [rows[place] for place in order]
    before = base[order] - first.measured[order]
    if not rows:
        raise InputError.of(_nothing(unused))
    fitted = _CardFit(card, rows, scale)
    slopes, error, spread = _narrowed(fitted)
    information = fitted.normal(slopes, error, np.ones(len(rows), bool))
    scale_of_noise = float(fitted.noise[0]) / noise_of(rows[0].row.metric)
    advise = partial(telling, _candidates(fitted) if not fitted.free.all() else (), information, scale_of_noise)
    if not fitted.free.any():
        run = advise(fitted.free, None)
        advice = f"; measure also: {run.words}" if run else ""
        msg = f"{len(rows)} measurements identify no parameter of {card.engine} on {card.hardware}{advice}"
        raise InputError.of(msg)
    design = slopes * fitted.free
    labels = [(one.configuration.layout, one.configuration.model.name, one.load) for one in rows]
    left = fitted.left_out(fitted.measured - error, design, labels, None) - fitted.measured
    return Calibrated(
        stretched(card, dict(zip(fitted.keys, fitted.value.tolist(), strict=True))),
        _moved(fitted, slopes, spread, advise),
        tuple(rows),
        before,
        -error,
        left if len(set(labels)) > 1 else -error,
        dict(sorted(unused.items())),
    )


def _nothing(unused: Counter[str]) -> str:
    why = "; ".join(f"{count}: {reason}" for reason, count in sorted(unused.items()))
    return f"none of the measurements can be used ({why})" if why else "there are no measurements"


def _narrowed(fitted: _CardFit) -> tuple[Floats, Floats, Floats]:
    """Fit, and let the worst identified factor stay, until all that are left are identified.

    Returns the slopes by all values, the errors, and the standard deviations.
    """
    prior, noise = fitted.precision**-0.5, fitted.noise.copy()
    base = fitted.predicted()
    slopes = fitted.slopes(fitted.rows, base)
    while True:
        base = _settled(fitted, base, slopes)
        # Slopes bend, and which factors are identified goes by them.
        slopes = fitted.slopes(fitted.rows, base)
        base = _settled(fitted, base, slopes)
        error = fitted.measured - base
        loud = float(np.median(np.abs(error) / noise)) / 0.6745  # of a normal variable
        fitted.noise = noise * float(np.clip(loud, QUIETEST, LOUDEST))
        stays = False
        while True:
            spread = fitted.spread(slopes, error)
            ratio = np.where(fitted.free, spread / prior, 0.0)
            worst = int(np.argmax(ratio))
            if ratio[worst] <= HALVED:
                break
            fitted.free[worst], stays = False, True
        if not stays:
            return slopes, error, spread
        fitted.value = np.where(fitted.free, fitted.value, 0.0)
        base = fitted.predicted()


def _settled(fitted: _CardFit, base: Floats, slopes: Floats) -> Floats:
    """Go to the minimum along slopes that are known; returns the predictions there."""
    for _ in range(ROUNDS):
        before = fitted.value
        fitted.step(base, slopes * fitted.free)
        base = fitted.predicted()
        if np.abs(fitted.value - before).max() < STILL:
            break
    return base


def _candidates(fitted: _CardFit) -> list[Candidate]:
    """Return runs that could be made, with the slopes of what they would measure."""
    wanted = experiments(fitted.rows)
    rows = [one for _, some in wanted for one in some]
    base = fitted.on([_with(one, fitted.card) for one in rows])
    slopes = fitted.slopes(rows, base)
    out, at = [], 0
    for run, some in wanted:
        places = slice(at, at + len(some))
        at += len(some)
        if np.isfinite(base[places]).all():
            out.append(Candidate(run, slopes[places], tuple(one.row.metric for one in some)))
    return out


def _moved(
    fitted: _CardFit, slopes: Floats, spread: Floats, advise: Callable[[Bools, int], Run | None]
) -> tuple[Moved, ...]:
    """Say of every factor what became of it, and which run would tell more."""
    touched = np.abs(slopes).max(axis=0) > 0.0
    out = []
    for number, key in enumerate(fitted.keys):
        free = bool(fitted.free[number])
        run = None
        if not free:
            run = advise(fitted.free, number)
            if run is None and not touched[number]:
                continue  # nothing that these models and layouts do has to do with it
        narrowed = float(spread[number] * fitted.precision[number] ** 0.5)
        factor = float(np.exp(fitted.value[number]))
        out.append(Moved(key, factor, float(spread[number]), narrowed, free, run))
    return tuple(out)
