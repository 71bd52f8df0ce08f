"""Write ``hardware/efficiency/*.yaml`` from operator fits and published readings.

Run ``python -m benchmarks.seed_efficiency`` to write the cards; with ``--check`` they are compared instead (exit status
1 where a card differs). The two tables are read from ``$PLANNER_SHARED`` (default: ``shared`` beside the repository).
The rules by which a number is chosen or carried over are told in ``docs/explanation/efficiency.md``.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from benchmarks import efficiency_tables as tables
from benchmarks.efficiency_evidence import WHEEL, Evidence, Fit, Group, Regime, Text, band
from planner.check.factors import STRETCH, capped, longest
from planner.spec.card import read_document
from planner.spec.hardware import HardwareCard

ROOT = Path(__file__).resolve().parent.parent
CARDS = ROOT / "hardware" / "efficiency"
FACTORS = ROOT / "benchmarks" / "efficiency_factors.yaml"
CardFactors = dict[str, float | dict[str, float]]
Factors = dict[str, CardFactors]
Numbers = dict[str, Any]
"""Factors on times, by card, class and, where it matters, number format; see benchmarks/fit_efficiency.py."""
HEADER = "# Written by benchmarks/seed_efficiency.py: change its rules or tables, then run it again.\n"
NETWORK = "ml-engineering 744d01e, network/README.md: 36.5 of 50 GB/s for each NIC, 4 nodes of B200; latency assumed"


def places(hardware: str, engine: str) -> Iterator[tuple[str, str]]:
    """Yield the (hardware, engine) pairs whose kernels may stand in, nearest first.

    Same hardware before other hardware, the card's own engine before the others.
    """
    first = tables.KIN.get(engine, engine)
    engines = (first, *(other for other in tables.ENGINES if other != first))
    seen: list[str] = []
    waiting = [hardware]
    while waiting:
        here = waiting.pop(0)
        if here not in seen:
            seen.append(here)
            yield from ((here, one) for one in engines)
            waiting.extend(tables.TARGETS[here].kernels_from)


def best_fit(evidence: Evidence, where: tuple[str, str], kernel: str, fitted: tuple[str, ...]) -> Fit | None:
    """First usable fit along the chain: place by place, at each place format by format, uneven routing first."""
    for hardware, engine in places(*where):
        for one in fitted:
            fits = evidence.fits.get((hardware, engine, kernel, one), [])
            usable = [fit for fit in fits if fit.usable()]
            if usable:
                return min(usable, key=lambda fit: tables.ROUTINGS.index(fit.routing))
    return None


class Writer:
    """Builds one card and collects the sources that its numbers name."""

    def __init__(self, evidence: Evidence, hardware: str, engine: str) -> None:
        """Prepare the card of ``engine`` on ``hardware``."""
        self.evidence = evidence
        self.where = hardware, engine
        self.target = tables.TARGETS[hardware]
        self.sources: dict[str, str] = {}
        self.versions: Counter[str] = Counter()

    def card(self) -> Text:
        """Return the whole document."""
        hardware, engine = self.where
        formats = {name: self._block(name) for name in tables.FORMATS}
        kinds = ("all_reduce", *tables.COLLECTIVES.values())
        collectives = {kind: self._collective(kind) for kind in kinds}
        self.sources["network"] = NETWORK
        assumed = {"source": "assumed", "basis": "assumed"}
        return {
            "hardware": hardware,
            "engine": engine,
            "version": min(self.versions, key=lambda one: (-self.versions[one], one)),
            "sources": dict(sorted(self.sources.items())),
            "formats": formats,
            "collectives": collectives,
            "scale_out": {"source": "network", "basis": "assumed", "band": tables.CARRIED_BAND} | tables.SCALE_OUT,
            "overhead": assumed
            | {"band": tables.OVERHEAD_BAND}
            | tables.OVERHEAD[engine]
            | ({"per_layer_host": tables.LAUNCHES[engine]} if engine in tables.LAUNCHES else {}),
            "imbalance": assumed | {"band": tables.CARRIED_BAND, "experts": tables.IMBALANCE},
        }

    def _block(self, name: str) -> Text:
        """Kernels of one format; where the accelerator lacks its matrix units only the weights are narrow."""
        units, kernels = tables.FORMATS[name]
        if units not in self.target.units:
            units, kernels = "bf16", tables.FOUR_BIT if name in tables.FOUR_BIT_FORMATS else tables.EIGHT_BIT
        block: Text = {"peak": units}
        for kernel, fitted in kernels.items():
            fit = best_fit(self.evidence, self.where, kernel, fitted)
            if fit is not None:
                block[kernel] = self._kernel(name, fit)
        return block

    def _kernel(self, name: str, fit: Fit) -> Text:
        """One group of a card from one fit: as fitted, or carried over."""
        values = dict(fit.values)
        own = (fit.hardware, fit.engine) == self.where and fit.fitted == tables.FITTED.get(name)
        key = f"{fit.hardware}-{fit.engine}-{fit.version}-{fit.fitted}-{fit.routing}".rstrip("-")
        routing = f", routing {fit.routing}" if fit.routing else ""
        source = (
            f"{WHEEL}, timings of {fit.engine} {fit.version} on {fit.hardware}, {fit.fitted} kernels{routing}; fitted"
        )
        if fit.hardware != self.where[0]:
            key, source = self._carry(values, fit, key, source)
        self.sources[key] = source
        self.versions[fit.version] += 1 + 9 * (fit.engine == self.where[1])
        numbers: Text = {}
        for column, value in values.items():
            numbers[column] = f"{value:.3g} us" if column in tables.TIMES else float(f"{value:.3g}")
        width = band(fit.p90)
        basis: Text = {"basis": "measured", "band": width}
        if not own:
            basis = {"basis": "assumed", "band": max(width, tables.CARRIED_BAND)}
        return {"source": key} | basis | numbers

    def _carry(self, values: dict[str, float], fit: Fit, key: str, source: str) -> tuple[str, str]:
        """Bring shares over from other hardware: this one's own median GEMM readings where there are any, else scaled.

        The scale is how the best GEMM shapes of the two accelerators compare. Returns the source and its key.
        """
        here, read = self.where[0], {}
        if fit.kernel == "gemm":
            medians = self.evidence.medians
            read = {name: medians[here, fit.fitted, name] for name in values if (here, fit.fitted, name) in medians}
        shapes = self.evidence.shapes
        if "compute" in values and "compute" not in read and {fit.hardware, here} <= shapes.keys():
            ratio = shapes[here] / shapes[fit.hardware]
            values["compute"] = min(values["compute"] * ratio, tables.RANGES["compute"][1])
            key += "-scaled"
            source += f"; compute x {ratio:.3g}, ratio of the best GEMM shapes in ml-engineering 744d01e"
        if read:
            values |= read
            key += "-median"
            source += f"; {' and '.join(read)} from medians of vllm timings on {here}"
        return key, source

    def _collective(self, kind: str) -> Text:
        """One collective; group sizes without evidence are carried over."""
        group = collective(self.evidence, *self.where, kind)
        key = kind.replace("_", "-")
        self.sources[key] = group.source
        return group.text(key)


def collective(evidence: Evidence, hardware: str, engine: str, kind: str) -> Group:
    """Return the collective of this engine, else of another engine here, else of another accelerator's links."""
    target = tables.TARGETS[hardware]
    own_name = tables.OWN_ALL_REDUCE.get(engine, tables.KIN.get(engine, engine))
    engines = (own_name, *(one for one in tables.ENGINES if one != own_name)) if kind == "all_reduce" else ("nccl",)
    own = next((evidence.groups[key] for one in engines if (key := (hardware, one, kind)) in evidence.groups), None)
    if own is None and (hardware, "nccl", "all_reduce") in evidence.groups:
        # A ring all-reduce is a reduce-scatter and an all-gather, so its bus bandwidth is theirs too.
        nccl = evidence.groups[hardware, "nccl", "all_reduce"]
        ring = {size: Regime(nccl.one_shot[size].latency, one.bandwidth) for size, one in nccl.ring.items()}
        own = Group(nccl.source, "assumed", max(nccl.band, tables.CARRIED_BAND), ring)
    if own is not None and (hardware, engine, kind) not in evidence.groups and kind == "all_reduce":
        own = own.carried(dict.fromkeys(own.ring, 1.0))
    if own is not None and set(tables.GROUPS) <= own.ring.keys():
        return own
    donor = collective(evidence, target.links_from, engine, kind)
    link = target.link / tables.TARGETS[target.links_from].link
    if own is None and {hardware, target.links_from} <= evidence.bus.keys():
        link = evidence.bus[hardware] / evidence.bus[target.links_from]
    part = {size: link * (tables.mesh_share(size) if target.mesh else 1.0) for size in donor.ring}
    carried = donor.carried(part)
    if own is None:
        source = carried.source if f"on {hardware}" in carried.source else f"{carried.source}; links x {link:.3g}"
        return Group(source, "assumed", carried.band, carried.ring, carried.one_shot)
    missing = sorted(carried.ring.keys() - own.ring.keys())
    source = f"{own.source}; groups of {missing}: {carried.source}"
    return Group(source, "assumed", carried.band, carried.ring | own.ring, carried.one_shot | own.one_shot)


WHOLE = (
    "factors of benchmarks/efficiency_factors.yaml on the times of all groups but the network's, fitted on published "
    "measurements of whole engines by benchmarks/fit_efficiency.py"
)


class Factored:
    """Puts the fitted factors on the times of a card."""

    def __init__(self, factors: CardFactors) -> None:
        """Keep the factors of one card."""
        self.factors = factors

    def factor(self, name: str, form: str = "") -> float:
        """Return a factor; 1 where none was fitted."""
        found = self.factors.get(name, 1.0)
        return float(found.get(form, 1.0) if isinstance(found, dict) else found)

    def block(self, name: str, block: Numbers) -> Numbers:
        """Put them on the kernels of one format."""
        made = dict(block)
        for kernel, shares in STRETCH.items():
            if kernel in block:
                numbers = dict(block[kernel])
                for share, by in shares.items():
                    value = capped(share, numbers[share], self.factor(by, name))
                    numbers[share] = float(f"{value:.3g}")
                numbers["kernel"] = fixed(numbers["kernel"], self.factor("kernel"))
                made[kernel] = numbers
        return made

    def regime(self, one: Numbers) -> Numbers:
        """Put them on one way to run a collective."""
        latency, bus = self.factor("latency"), 1.0 / self.factor("bus")
        return {"latency": times(one["latency"], latency), "bandwidth": times(one["bandwidth"], bus)}

    def group(self, group: Numbers) -> Numbers:
        """Put them on one collective."""
        made = dict(group)
        for regime in ("one_shot", "ring"):
            if regime in group:
                made[regime] = {size: self.regime(one) for size, one in group[regime].items()}
        return made

    def card(self, card: Numbers) -> Text:
        """Put them on a whole card."""
        overhead = {
            name: times(value, self.factor(name)) if name.startswith("per_") else value
            for name, value in card["overhead"].items()
        }
        changed = {
            "formats": {name: self.block(name, block) for name, block in card["formats"].items()},
            "collectives": {name: self.group(group) for name, group in card["collectives"].items()},
            "overhead": overhead | {"source": "whole"},
            "sources": card["sources"] | {"whole": WHOLE},
        }
        return {key: changed.get(key, value) for key, value in card.items()}


def times(text: str, by: float) -> str:
    """Multiply a quantity.

    >>> times("4 us", 1.5), times("900 GB/s", 1.2)
    ('6 us', '1080 GB/s')
    """
    value, unit = text.split()
    made = float(f"{float(value) * by:.3g}")
    return f"{made:g} {unit}"


def fixed(text: str, by: float) -> str:
    """Multiply the fixed cost of a kernel, in microseconds, within what is physical.

    >>> fixed("45 us", 1.5), fixed("45 us", 4.0)
    ('67.5 us', '100 us')
    """
    value = float(text.split(maxsplit=1)[0])
    return f"{longest(value / 1e6, by) * 1e6:.3g} us"


def flow(key: str, value: object) -> bool | None:
    """Return PyYAML's style for one entry: the innermost mappings in flow style, but each source on its line."""
    return None if isinstance(value, dict) and key != "sources" else False


def readable(document: Text) -> str:
    """Write a document with one group of numbers, or one source, to a line."""
    parts = (
        yaml.safe_dump({key: value}, default_flow_style=flow(key, value), sort_keys=False, width=1000)
        for key, value in document.items()
    )
    return "".join(parts)


def cards(shared: Path, factors: Factors | None = None) -> dict[Path, str]:
    """Return the text of every card by path, with ``factors`` in place of the fitted ones where given."""
    known: Factors = yaml.safe_load(FACTORS.read_text("utf-8")) if factors is None else factors
    folder = CARDS.parent
    peaks = {name: read_document(folder / f"{name}.yaml", HardwareCard) for name in tables.TARGETS}
    evidence = Evidence(shared, peaks)
    texts: dict[Path, str] = {}
    for hardware, target in tables.TARGETS.items():
        for engine in target.engines:
            document = Writer(evidence, hardware, engine).card()
            if own := known.get(f"{hardware}--{engine}"):
                document = Factored(own).card(cast("Numbers", document))
            texts[CARDS / f"{hardware}--{engine}.yaml"] = HEADER + readable(document)
    return texts


def main(arguments: list[str] | None = None) -> int:
    """Write the cards, or compare them and return 1 where one differs."""
    parser = argparse.ArgumentParser(description="Write the efficiency cards from fits and readings.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    texts = cards(Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared")))
    differ = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text]
    differ += sorted(set(CARDS.glob("*.yaml")) - texts.keys())
    if options.check:
        sys.stderr.writelines(f"{path.name} differs\n" for path in differ)
        return int(bool(differ))
    CARDS.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        part = path.with_suffix(".part")
        part.write_text(text, "utf-8")
        part.replace(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
