"""What the tables of operator fits and published readings say, looked up by card."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks import efficiency_tables as tables
from planner.spec.hardware import HardwareCard

WHEEL = "aiconfigurator-core 0.12.0"

Text = dict[str, object]
"""A mapping of the YAML document under construction."""


class Regime(NamedTuple):
    """A collective takes ``latency [us] + factor * bytes / bandwidth [GB/s]``."""

    latency: float
    bandwidth: float

    def text(self) -> Text:
        """Return the regime as a card writes it."""
        return {"latency": f"{self.latency:.3g} us", "bandwidth": f"{self.bandwidth:.4g} GB/s"}


@dataclass(frozen=True, slots=True)
class Fit:
    """One fit of one kernel; shares of peak, microseconds."""

    kernel: str
    hardware: str
    engine: str
    version: str
    fitted: str
    routing: str
    median: float
    p90: float
    values: dict[str, float]

    def usable(self) -> bool:
        """Return whether the fit explains its timings with physical numbers."""
        ranges = {name: tables.NARROWER.get((self.kernel, name), tables.RANGES[name]) for name in self.values}
        physical = all(ranges[name][0] <= value <= ranges[name][1] for name, value in self.values.items())
        return physical and self.median <= tables.MAX_MEDIAN


@dataclass(frozen=True, slots=True)
class Group:
    """A collective by group size, and where it comes from."""

    source: str
    basis: str
    band: float
    ring: dict[int, Regime]
    one_shot: dict[int, Regime] = field(default_factory=dict)

    def carried(self, ratio: dict[int, float]) -> "Group":
        """Return the collective on links that are ``ratio`` times as fast, by group size."""
        ring, one_shot = (
            {size: Regime(one.latency, one.bandwidth * ratio[size]) for size, one in regimes.items()}
            for regimes in (self.ring, self.one_shot)
        )
        return Group(self.source, "assumed", max(self.band, tables.CARRIED_BAND), ring, one_shot)

    def text(self, key: str) -> Text:
        """Return the collective as a card writes it."""
        one_shot = {"one_shot": {p: self.one_shot[p].text() for p in sorted(self.one_shot)}} if self.one_shot else {}
        ring = {"ring": {p: self.ring[p].text() for p in sorted(self.ring)}}
        return {"source": key, "basis": self.basis, "band": round(self.band, 2)} | one_shot | ring


def band(p90: float) -> float:
    """Half width of the 80 % band of a fit whose relative error is below ``p90`` [%] in nine of ten cases.

    >>> band(20.0), band(5.0)
    (0.16, 0.08)
    """
    return max(tables.LEAST_BAND, round(p90 / 100 * tables.TO_80, 2))


def card_engine(backend: str) -> str | None:
    """Name of an engine's card from its name in the tables, or None where launches are not captured in a graph."""
    name, _, mode = backend.partition(":")
    names = {fitted: engine for engine, fitted in tables.ENGINES.items()} | {"nccl": "nccl"}
    return None if mode.endswith("eager") else names.get(name)


class Evidence:
    """The two tables, read once and looked up by card."""

    def __init__(self, shared: Path, hardware: Mapping[str, HardwareCard]) -> None:
        """Read the tables below ``shared``; ``hardware`` holds the peaks that the readings are compared with."""
        self.hardware = hardware
        self.fits: dict[tuple[str, str, str, str], list[Fit]] = {}
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.shapes: dict[str, float] = {}
        self.medians: dict[tuple[str, str, str], float] = {}
        self.bus: dict[str, float] = {}
        readings = list(rows(shared / "catalog" / "measured.csv"))
        for row in readings:
            self._reading(row)
        self._listed(readings)
        for row in rows(shared / "measured" / "operator-fits.csv"):
            self._fit(row)

    def _fit(self, row: dict[str, str]) -> None:
        engine = card_engine(row["backend"])
        hardware = tables.CARD[row["system"]]
        error = band(float(row["p90_ape"]))
        if engine is None:
            return
        if kernel := tables.OPERATORS.get(row["op"]):
            values = {name: float(row[column]) for name, column in tables.COLUMNS[kernel].items()}
            errors = float(row["med_ape"]), float(row["p90_ape"])
            one = Fit(kernel, hardware, engine, row["version"], row["dtype"], row["dist"], *errors, values)
            self.fits.setdefault((hardware, engine, kernel, row["dtype"]), []).append(one)
            return
        if row["op"] == "all_reduce_two_regime":
            kind = "all_reduce"
            one_shot = {int(float(row["tp"])): Regime(float(row["a1_us"]), float(row["b1_GBs"]))}
            ring = Regime(float(row["a2_us"]), float(row["b2_GBs"]))
        elif engine == "nccl" and (kind := tables.COLLECTIVES.get(row["op"], "")):
            one_shot, ring = {}, Regime(float(row["alpha_us"]), float(row["busbw_GBs"]))
        else:
            return
        source = f"{WHEEL}, {kind} of {engine} {row['version']} on {hardware}, fitted"
        self._join((hardware, engine, kind), Group(source, "measured", error, {int(float(row["tp"])): ring}, one_shot))

    def _join(self, key: tuple[str, str, str], new: Group) -> None:
        """Add a group size; a later version (rows of other versions differ in source) replaces an earlier one."""
        old = self.groups.get(key)
        if old is None or (old.source != new.source and version(new.source) > version(old.source)):
            self.groups[key] = new
        elif old.source == new.source:
            widest = max(old.band, new.band)
            joined = Group(new.source, new.basis, widest, old.ring | new.ring, old.one_shot | new.one_shot)
            self.groups[key] = joined

    def _reading(self, row: dict[str, str]) -> None:
        hardware = tables.CARD.get(row["hardware"])
        if hardware is None:
            return
        # Shares are taken of our own cards' peaks: the readings' percentages may mean another data sheet.
        card = self.hardware[hardware]
        if row["metric"].startswith("MAMF best shape, mean"):
            self.shapes[hardware] = float(row["value"]) * 1e12 / card.peak.rates["bf16"]
        elif row["metric"].startswith("median over all shapes"):
            fitted = row["kind"].removeprefix("gemm_")
            peak = card.peak.rates[tables.UNITS[fitted]]
            self.medians[hardware, fitted, "compute"] = float(row["value"]) * 1e12 / peak
        elif row["kind"] == "hbm_bw":
            self.medians[hardware, row["metric"].split()[0], "memory"] = (
                float(row["value"]) * 1e9 / card.memory.bandwidth
            )
        elif row["kind"] == "allreduce_busbw" and "8 GPUs" in row["metric"]:
            self.bus.setdefault(hardware, float(row["value"]))

    def _listed(self, readings: Iterable[dict[str, str]]) -> None:
        """Read the all-reduce times that are listed by message size."""
        for row in readings:
            match = re.fullmatch(r"(\S+) (\S+) (\d+) GPUs, smallest message", row["metric"])
            hardware = tables.CARD.get(row["hardware"])
            engine = card_engine(match[1]) if match else None
            if match is None or hardware is None or engine is None:
                continue
            times = {int(size): float(time) for size, time in re.findall(r"(\d+)B=([\d.]+)us", row["conditions"])}
            source = f"{WHEEL}, all_reduce of {engine} {match[2]} on {hardware}, listed times"
            self._join((hardware, engine, "all_reduce"), two_regimes(int(match[3]), times, source))


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def version(source: str) -> tuple[int, ...]:
    """Numbers of the engine's version in a source, for comparing; fits outrank listed times."""
    found = re.search(r" of \S+ ([\w.]+) on ", source)
    numbers = tuple(int(part) for part in re.findall(r"\d+", found[1])) if found else ()
    return (int(source.endswith("fitted")), *numbers)


def two_regimes(size: int, times: dict[int, float], source: str) -> Group:
    """Describe listed times by the pair of regimes that errs least: both pass the floor or a multiple of it.

    The one-shot regime goes through one of the middle messages, the ring through the largest.
    """
    floor, largest = min(times.values()), max(times)

    def worst(pair: tuple[Regime, Regime]) -> float:
        errors = sorted(abs(two_regime_time(size, sent, pair) / time - 1) for sent, time in times.items())
        return errors[round(0.9 * (len(errors) - 1))]

    pairs = [
        (
            Regime(floor, (size - 1) * middle / (times[middle] - floor) / 1e3),
            Regime(start, 2 * (size - 1) / size * largest / (times[largest] - start) / 1e3),
        )
        for middle in sorted(times)[1:-1]
        for start in (floor * step for step in (1.0, 1.5, 2.0, 3.0, 5.0, 8.0))
        if times[middle] > floor and times[largest] > start
    ]
    best = min(pairs, key=worst)
    return Group(source, "published", band(100 * worst(best)), {size: best[1]}, {size: best[0]})


def two_regime_time(size: int, sent: float, pair: tuple[Regime, Regime]) -> float:
    """Time [us] of an all-reduce of ``sent`` bytes in the faster of (one-shot, ring).

    >>> two_regime_time(2, 1e6, (Regime(5.0, 100.0), Regime(10.0, 200.0)))
    15.0
    """
    one_shot, ring = pair
    direct = one_shot.latency + (size - 1) * sent / one_shot.bandwidth / 1e3
    return min(direct, ring.latency + 2 * (size - 1) / size * sent / ring.bandwidth / 1e3)
