"""Fit what operator timings cannot tell: factors on the times of efficiency cards, from measurements of whole engines.

Run ``python -m benchmarks.fit_efficiency`` (seven minutes); it writes ``benchmarks/efficiency_factors.yaml``, which
``benchmarks/seed_efficiency.py`` puts on the operator fits, and ``hardware/measurements/bands.yaml``. The table is read
from ``$PLANNER_SHARED`` (default: ``shared`` beside the repository).

Each factor has a physical meaning: GEMM compute and bandwidth, expert compute and bandwidth, prefill and decode
attention, fixed cost of kernels, latency and bandwidth of collectives, overhead of a layer, a step, a sequence and a
request. Its logarithm is a sum of effects (all; engine; accelerator family; both; number format; accelerator), each
drawn towards zero by a prior, so that cells with few rows lean on those that share their physics. None is of a model
and none of a source. Least squares on the logarithm of predicted over measured, weights of Cauchy's kind against
outliers, Gauss-Newton. Left-out errors are linear steps from the full fit.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml
from tabulate import tabulate

from benchmarks.seed_efficiency import cards
from planner.check import fit
from planner.check.accuracy import configuration_key, expressed
from planner.check.expression import Expressed
from planner.check.factors import BY_CACHE, CLASSES, LOOSE, WHOLE, Key, stretched
from planner.check.fit import BUMP, folded
from planner.check.kinds import predict
from planner.intake.observations import read
from planner.numeric import Bools, Floats
from planner.spec.bands import Bands
from planner.spec.catalog import Catalog
from planner.spec.efficiency import EfficiencyCard
from planner.spec.observation import figure

ROOT = Path(__file__).resolve().parent.parent
FACTORS = ROOT / "benchmarks" / "efficiency_factors.yaml"
ACCURACY = ROOT / "docs" / "explanation" / "accuracy.md"
BANDS = ROOT / "hardware" / "measurements" / "bands.yaml"
WIDTHS = {"all": 0.5, "engine": 0.35, "family": 0.35, "both": 0.3, "format": 0.3, "cell": 0.2, "hardware": 0.15}
"""Standard deviations of the priors of effects, in the logarithm."""
FOLDS = 12
ROUNDS = 9
FEWEST = 40
"""Rows that a band must come from; below it a wider circle is taken."""
Effect = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """What effects are of."""

    engine: str
    family: str
    hardware: str
    format: str


def effects(name: str, at: Place) -> list[Effect]:
    """Effects that add up to a factor; the second word says of what kind each is."""
    out: list[Effect] = [
        (name, "all"),
        (name, "engine", at.engine),
        (name, "family", at.family),
        (name, "both", at.engine, at.family),
        (name, "hardware", at.engine, at.hardware),
    ]
    if name not in WHOLE:
        # What is scaled block by block has kernels of its own, which share the matrix units of its format.
        for form in dict.fromkeys((at.format.removesuffix("_block"), at.format)):
            out += [(name, "format", form), (name, "cell", at.engine, at.family, form)]
    return out


def prior(effect: Effect) -> float:
    """Return the standard deviation of an effect."""
    return WIDTHS[effect[1]] * LOOSE.get(effect[0], 1.0)


def place(one: Expressed, name: str) -> Place:
    """Where a factor of an observation belongs."""
    of = one.configuration
    form = of.kv if name in BY_CACHE else of.kernels
    return Place(of.efficiency.engine, of.hardware.family, of.hardware.name, form)


class Effects:
    """All effects, in order."""

    def __init__(self, rows: Sequence[Expressed]) -> None:
        """Give the effects that the rows touch their numbers."""
        names = dict.fromkeys(e for one in rows for name in CLASSES for e in effects(name, place(one, name)))
        self.index = {effect: number for number, effect in enumerate(names)}
        self.precision = np.array([1.0 / prior(effect) ** 2 for effect in self.index])

    def factor(self, name: str, at: Place, value: Floats) -> float:
        """Sum of the known effects of a factor, in the logarithm."""
        return float(sum(value[self.index[e]] for e in effects(name, at) if e in self.index))


def logs(card: EfficiencyCard, family: str, fitted: "Fit", bump: str | None = None) -> dict[Key, float]:
    """Every factor of a card, in the logarithm; ``bump`` names a class to move a little."""
    formats = {str(name) for name in card.formats}
    out = {}
    for name in CLASSES:
        for form in [""] if name in WHOLE else sorted(formats):
            moved = BUMP if name == bump else 0.0
            at = Place(card.engine, family, card.hardware, form)
            out[name, form] = fitted.effects.factor(name, at, fitted.value) + moved
    return out


class Fit(fit.Fit):
    """The fit of all effects to all rows."""

    def __init__(self, rows: Sequence[Expressed], trusted: Bools) -> None:
        """Prepare the rows; those not ``trusted`` are predicted, but not fitted on."""
        self.effects = Effects(rows)
        super().__init__(rows, trusted, self.effects.precision)

    def predicted(self, bump: str | None = None) -> Floats:
        """Logarithm of every prediction with the effects as they are."""
        made: dict[tuple[str, str], EfficiencyCard] = {}
        rows = []
        for one in self.rows:
            of = one.configuration
            key = of.hardware.name, of.efficiency.engine
            if key not in made:
                made[key] = stretched(of.efficiency, logs(of.efficiency, of.hardware.family, self, bump))
            rows.append(replace(one, configuration=replace(of, efficiency=made[key])))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.log(predict(rows)))

    def design(self, base: Floats) -> Floats:
        """Return the derivative of every prediction by every effect, (rows, effects)."""
        out = np.zeros((len(self.rows), len(self.effects.index)))
        for name in CLASSES:
            slope = (self.predicted(name) - base) / BUMP
            for number, one in enumerate(self.rows):
                if np.isfinite(slope[number]) and slope[number]:
                    for effect in effects(name, place(one, name)):
                        out[number, self.effects.index[effect]] += slope[number]
        return out


def covered(
    rows: Sequence[Expressed], residual: Floats, away: Floats, labels: Sequence[object]
) -> dict[tuple[str, str], float]:
    """Share of the rows of a kind and metric that lie in bands made without their fold; those of few groups left out.

    The residuals are of fits without the fold themselves, so nothing of a row is in its prediction or in its band.
    """
    fold, known = folded(labels, FOLDS), np.isfinite(residual)
    inside: dict[tuple[str, str], list[bool]] = {}
    groups: dict[tuple[str, str], set[object]] = {}
    for one in np.unique(fold):
        others = (fold != one) & known
        rest = [row for row, taken in zip(rows, others.tolist(), strict=True) if taken]
        kept = {"sources": {"residuals": "others"}, "bands": bands(rest, residual[others], away[others])}
        made = Bands.model_validate(kept)
        for number in np.flatnonzero((fold == one) & known).tolist():
            of, row = rows[number].configuration, rows[number].row
            low, high = made.of(row.kind, row.metric, of.hardware.family, sparse=of.model.sparse)
            key = row.kind, figure(row.metric)
            inside.setdefault(key, []).append(bool(low <= np.exp(residual[number]) <= high))
            groups.setdefault(key, set()).add(labels[number])
    return {key: float(np.mean(some)) for key, some in inside.items() if len(groups[key]) >= LEAST}


def bands(rows: Sequence[Expressed], residual: Floats, away: Floats) -> list[dict[str, object]]:
    """Bands from residuals of left-out rows: by family and kind of model, by family, and for all.

    The last stands in for families that nobody measured, so it is of residuals ``away`` of fits without the hardware.

    The level is raised for how few they are, as split conformal bands do: (n + 1) / n of it for n residuals that are
    drawn alike (Lei et al., JASA 2018, section 2.2). Rows of one configuration err together, though not all the way,
    so n lies between configurations and rows: here 2 for each configuration.
    """
    found: dict[tuple[str, str, str | None, bool | None], list[float]] = {}
    among: dict[tuple[str, str, str | None, bool | None], set[object]] = {}
    for one, value, far in zip(rows, residual.tolist(), away.tolist(), strict=True):
        if np.isfinite(value):
            of = one.configuration
            for family, kind in ((of.hardware.family, of.model.sparse), (of.hardware.family, None), (None, None)):
                circle = one.row.kind, figure(one.row.metric), family, kind
                found.setdefault(circle, []).append(value if family else far)
                among.setdefault(circle, set()).add(configuration_key(one))
    out = []
    for key, some in sorted(found.items(), key=lambda item: (item[0][:2], item[0][2] is None, str(item[0][2:]))):
        if len(some) >= FEWEST or key[2] is None:
            level = min(90.0 * (1.0 + 0.5 / len(among[key])), 100.0)
            low, high = np.exp(np.percentile(some, [100.0 - level, level]))
            low, high = min(low, 1.0), max(high, 1.0)  # a prediction lies in its own band
            entry: dict[str, object] = {"kind": key[0], "metric": key[1]}
            entry |= {"family": key[2]} if key[2] else {}
            entry |= {"sparse": key[3]} if key[3] is not None else {}
            out.append(entry | {"rows": len(some), "low": float(f"{low:.3g}"), "high": float(f"{high:.3g}")})
    return sorted(out, key=lambda one: (one["kind"], one["metric"], "family" not in one, "sparse" not in one))


def kinds(rows: Sequence[Expressed], error: Floats) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Rows, median and 90th percentile of the absolute errors by kind and metric."""
    groups: dict[tuple[str, str], list[float]] = {}
    for one, value in zip(rows, error.tolist(), strict=True):
        if np.isfinite(value):
            groups.setdefault((one.row.kind, figure(one.row.metric)), []).append(abs(float(np.expm1(value))))
    return {
        key: (len(some), float(np.median(some)), float(np.percentile(some, 90.0)))
        for key, some in sorted(groups.items())
    }


def page(rows: Sequence[Expressed], errors: dict[str, Floats], coverage: dict[tuple[str, str], float]) -> str:
    """Compose ``docs/explanation/accuracy.md``."""
    found = {name: kinds(rows, error) for name, error in errors.items()}
    heads = ["Kind", "Metric", "Rows", *(f"{name}" for name in found), "In the band"]
    first = next(iter(found.values()))
    lines = []
    for key, (count, _, _) in first.items():
        cells = [f"{found[name][key][1]:.1%} ({found[name][key][2]:.0%})" for name in found]
        cells.append(f"{coverage[key]:.0%}" if key in coverage else "")
        lines.append([*(part.replace("_", " ") for part in key), str(count), *cells])
    whole = tabulate(lines, heads, tablefmt="pipe", disable_numparse=True)
    worst = tabulate(_worst(rows, errors["configuration"]), WORST_HEADS, tablefmt="pipe", disable_numparse=True)
    return PAGE.format(whole=whole, worst=worst)


WORST_HEADS = ("Engine", "Accelerator", "Model", "Metric", "Rows", "Median error", "Bias")


def _worst(rows: Sequence[Expressed], error: Floats) -> list[list[str]]:
    """List groups of at least ten rows with the largest median errors."""
    groups: dict[tuple[str, str, str, str], list[float]] = {}
    for one, value in zip(rows, error.tolist(), strict=True):
        if np.isfinite(value):
            of = one.configuration
            key = (
                of.family,
                of.hardware.name,
                of.model.name,
                f"{one.row.kind.replace('_', ' ')}: {figure(one.row.metric)}",
            )
            groups.setdefault(key, []).append(value)
    large = [(key, some) for key, some in groups.items() if len(some) >= LEAST]
    large.sort(key=lambda item: -float(np.median(np.abs(np.expm1(item[1])))))
    return [
        [*key, str(len(some)), f"{np.median(np.abs(np.expm1(some))):.0%}", f"{100.0 * np.median(some):+.0f} %"]
        for key, some in large[:MOST]
    ]


LEAST = 10
MOST = 20
PAGE = """\
# How accurate planner is

Written by `benchmarks/fit_efficiency.py`; do not edit. `planner accuracy FILE` holds predictions against any table of
measurements in the same columns, through the step times that plans are made of.

Errors are absolute percentage errors, median (90th percentile). Out of sample: *configuration* leaves out a fold of
configurations (source, engine, model, weights format, accelerator, TP, EP), *model* and *hardware* all rows of one.
Left-out fits are linear steps from the full fit. *In the band* is the share of rows that lie in their 80 % band, made
from the left-out residuals of other folds alone, where a kind has ten configurations or more.

{whole}

## What is fitted

The efficiency cards start from operator timings. On them come factors for GEMM compute and bandwidth, expert compute
and bandwidth, prefill and decode attention, the fixed cost of kernels, latency and bandwidth of collectives, and the
overhead of a layer, a step, a sequence and a request. The logarithm of each is a sum of effects of the engine, the
accelerator family, both, the number format and the accelerator, drawn towards zero by priors: tight where operators
were timed, loose where nothing was. No effect is of a model or of a source.

Engines of an earlier generation (vLLM before captured graphs, TensorRT-LLM's C++ runtime) have cards of their own; an
unstated version is that of the model's time. Not fitted on, but predicted: rows at a latency limit.

## Where it is wrong

{worst}

Effects that are missing:

- *How many requests a run had.* Time to first token at a fixed concurrency holds the first burst; where a row does not
  state the number of prompts, eight rounds are assumed. Some runs had one.
- *Order in closed loops.* Requests of one length end in the order in which they were prefilled. Where prompts have
  steps of their own the loop is taken to stay in step for good; some engines lose it after a while.
- *Kernels of one attention.* MLA and sparse attention are counted, but share their efficiencies with grouped queries.
- *Limits of a server.* Rows at a limit do not state it; 99 % within 2 s and 200 ms is assumed.
- *Layouts of a pipeline* are taken as balanced and without bubbles between prefill chunks.
"""


def show(title: str, rows: Sequence[Expressed], error: Floats) -> None:
    """Print the errors by kind and metric."""
    print(f"-- {title}")
    for key, (count, median, high) in kinds(rows, error).items():
        print(f"{' '.join(key):60s} {count:5d} {median:7.1%} {high:7.1%}")


def _watch(number: int, error: Floats) -> None:
    print(f"round {number + 1}: median |error| before {np.median(np.abs(error)):.4f}", flush=True)


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dry", action="store_true", help="print only")
    options = parser.parse_args()
    shared = Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared"))
    catalog = Catalog()
    bare = {path.stem: EfficiencyCard.model_validate(_plain(text)) for path, text in cards(shared, factors={}).items()}
    rows, _ = expressed(read(shared / "measured" / "development.csv"), catalog)
    rows = [
        replace(one, configuration=replace(of, efficiency=bare[f"{of.hardware.name}--{of.efficiency.engine}"]))
        for one in rows
        for of in (one.configuration,)
    ]
    # Figures at a limit depend on the limit, which is not stated.
    trusted = np.array([one.row.kind != "server_at_slo" for one in rows])
    fitted = Fit(rows, trusted)
    base, design = fitted.run(ROUNDS, _watch)
    group = fitted.left_out(base, design, [configuration_key(one) for one in rows], FOLDS)
    model = fitted.left_out(base, design, [one.configuration.model.name for one in rows], None)
    hardware = fitted.left_out(base, design, [one.configuration.hardware.name for one in rows], None)
    named = {"in sample": base, "configuration": group, "model": model, "hardware": hardware}
    errors = {name: out - fitted.measured for name, out in named.items()}
    for name, error in errors.items():
        show(name, rows, error)
    if options.dry:
        return
    families = {name: catalog.hardware(name).family for name in catalog.names("hardware")}
    write_factors(bare, families, fitted)
    left, away = fitted.measured - group, fitted.measured - hardware
    coverage = covered(rows, left, away, [configuration_key(one) for one in rows])
    ACCURACY.write_text(page(rows, errors, coverage), "utf-8")
    write_bands(rows, left, away)


def write_factors(bare: dict[str, EfficiencyCard], families: dict[str, str], fitted: Fit) -> None:
    """Write the factors of every card."""
    factors: dict[str, dict[str, object]] = {}
    for name, card in sorted(bare.items()):
        entry: dict[str, object] = {}
        for (kind, form), value in logs(card, families[card.hardware], fitted).items():
            rounded = float(f"{np.exp(value):.3g}")
            if form:
                inner = entry.setdefault(kind, {})
                if isinstance(inner, dict):
                    inner[form] = rounded
            else:
                entry[kind] = rounded
        factors[name] = entry
    head = "# Written by benchmarks/fit_efficiency.py. Factors on times; above 1 is slower than operator timings say.\n"
    FACTORS.write_text(head + yaml.safe_dump(factors, sort_keys=False, default_flow_style=None, width=1000), "utf-8")


def write_bands(rows: Sequence[Expressed], left: Floats, away: Floats) -> None:
    """Write the bands that every answer carries."""
    source = (
        "left-out residuals of benchmarks/fit_efficiency.py: the configuration, or the hardware where none is named"
    )
    document = {"sources": {"residuals": source}, "bands": bands(rows, left, away)}
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=1000)
    BANDS.write_text("# Written by benchmarks/fit_efficiency.py.\n" + text, "utf-8")


def _plain(text: str) -> object:
    import tempfile  # noqa: PLC0415

    from planner.spec.text import load  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "card.yaml"
        path.write_text(text, "utf-8")
        return load(path).value


if __name__ == "__main__":
    main()
