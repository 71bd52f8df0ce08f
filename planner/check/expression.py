"""From an observation to what planner predicts for: one exact configuration and its traffic, or the reason why not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from planner.check.engines import Named, named
from planner.engine.chip import chip
from planner.errors import InputError
from planner.plan.subjects import checkpoint_of
from planner.replica.candidates import Subject
from planner.spec.catalog import Catalog, in_use, kernels, newest
from planner.spec.efficiency import EfficiencyCard
from planner.spec.engine import EngineCard, EngineVersion, tailor
from planner.spec.hardware import HardwareCard
from planner.spec.model import KvFormat, ModelCard, NumberFormat
from planner.spec.observation import FIXED_BATCH, Observation
from planner.spec.scenario import Lengths
from planner.workload.blend import blend
from planner.workload.stats import Workload, bins

ROUNDS = 8.0
"""Requests that each place of a closed loop serves where a row does not say how many prompts were sent: load
generators send 5 to 10 by habit."""
AMD_FP4: NumberFormat = "mxfp4"
"""What four-bit floats mean on accelerators of AMD."""
CACHE_FP8 = ("fp8", "nvfp4")
"""Formats of weights whose checkpoints carry scales of an FP8 cache, which engines then take by default. Published runs
bear it out: they hold batches that a cache of 16 bits would not."""
METRICS = {
    "fixed_concurrency": ("ttft", "tpot", "e2e_latency", "output", "total"),
    "saturated": ("output", "total"),
    "open_loop": ("ttft", "tpot", "output", "total"),
    "server_at_slo": ("ttft", "tpot", "output", "total"),
}
"""How the names of the metrics begin that a kind is predicted in; all for the batches of other kinds."""
Pair = tuple[str, str]
"""Names of an accelerator, and of an engine or a generation of one: what an efficiency card is of."""
_JITTER = re.compile(r"uniform (\d*\.?\d+)-(\d*\.?\d+) of nominal")
_PROMPTS = re.compile(r"^(\d+(?:\.\d+)?)\s*(x concurrency)?$")


class InexpressibleError(Exception):
    """An observation that the cards cannot express; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One replica as it ran, and its cards."""

    model: ModelCard
    hardware: HardwareCard
    efficiency: EfficiencyCard
    engine: EngineVersion
    family: str
    weights: NumberFormat
    kv: KvFormat
    layout: tuple[int, int, int, int]
    """(tp, pp, dp, ep)."""
    replicas: int

    @property
    def kernels(self) -> str:
        """Number format of the kernels for the weights: what is scaled block by block has its own."""
        blocked = checkpoint_of(self.model, self.weights).block is not None
        own = f"{self.weights}_block"
        return own if blocked and own in {str(name) for name in self.efficiency.formats} else str(self.weights)

    @property
    def accelerators(self) -> int:
        """Accelerators of one replica."""
        return self.layout[0] * self.layout[1] * self.layout[2]


@dataclass(frozen=True, slots=True)
class Load:
    """What a replica was given."""

    input: float
    output: float
    spread: tuple[float, float] | None
    """Shares of the lengths between which they were drawn evenly; None where all were alike."""
    circulating: float
    """Requests in flight in one replica."""
    rate: float | None
    """Arrivals at one replica [req/s]."""
    rounds: float
    """Requests that each place of a closed loop served."""


@dataclass(frozen=True, slots=True)
class Expressed:
    """An observation in planner's terms."""

    row: Observation
    configuration: Configuration
    load: Load


def express(row: Observation, catalog: Catalog, own: Mapping[Pair, EfficiencyCard] = MappingProxyType({})) -> Expressed:
    """Express an observation.

    ``own`` has efficiency cards that count before those of the catalog. Raises :class:`InexpressibleError` with the
    reason.
    """
    if row.speculative not in (None, "none"):
        raise InexpressibleError("speculative decoding is not modelled yet")
    if row.regime != FIXED_BATCH and not row.metric.startswith(METRICS.get(row.kind, "")):
        msg = f"{row.metric} is not predicted for {row.kind}"
        raise InexpressibleError(msg)
    if row.tp is None:
        raise InexpressibleError("the layout is not stated")
    try:
        model, hardware = catalog.model(row.model), catalog.hardware(row.hardware)
    except InputError as error:
        msg = f"no card of {error.faults[0].value.strip(chr(39))}"
        raise InexpressibleError(msg) from error
    engine = named(row.engine, row.engine_version)
    if engine is None:
        msg = f"engine {row.engine!r} is not known"
        raise InexpressibleError(msg)
    card = catalog.engine(engine.family)
    known = _version(card, engine, model)
    pair = (hardware.name, kernels(card, known))
    try:
        efficiency = own[pair] if pair in own else catalog.efficiency(*pair)
    except InputError as error:
        msg = f"no efficiency card of {pair[1]} on {pair[0]}"
        raise InexpressibleError(msg) from error
    weights = _weights(row, model, hardware)
    if weights not in model.checkpoints and weights in {"mxfp4", "nvfp4"} and hardware.name.startswith("tpu"):
        msg = f"{weights} is not served on {hardware.name}"
        raise InexpressibleError(msg)
    layout, replicas, circulating = _layout(row, model)
    behaviour = tailor(known, hardware.memory.usable, hardware.family)
    configuration = Configuration(
        model,
        hardware,
        efficiency,
        behaviour,
        engine.family,
        weights,
        _cache(row, weights),
        layout,
        replicas,
    )
    rate = None if row.request_rate is None or np.isinf(row.request_rate) else row.request_rate / replicas
    load = Load(
        row.input_tokens, row.output_tokens, _spread(row), circulating, rate, _rounds(row, circulating * replicas)
    )
    return Expressed(row, configuration, load)


def _version(card: EngineCard, engine: Named, model: ModelCard) -> EngineVersion:
    """Behaviour of the engine: where nothing tells its age, as of the middle of the model's time, else the newest."""
    if engine.version is not None:
        return newest(card, engine.version) or card.versions[0]
    if engine.dated or model.released is None or model.succeeded is None or card.versions[0].released is None:
        return card.versions[-1]
    first, last = (12 * int(month[:4]) + int(month[5:]) - 1 for month in (model.released, model.succeeded))
    year, month = divmod((first + last) // 2, 12)
    return in_use(card, f"{year:04d}-{month + 1:02d}")


def _weights(row: Observation, model: ModelCard, hardware: HardwareCard) -> NumberFormat:
    """Format of the weights; four-bit floats are those of the checkpoint, else those of the accelerator's maker."""
    if row.weights_dtype is None:
        return model.native_format
    if row.weights_dtype == "fp16":
        return "bf16"
    if row.weights_dtype != "fp4":
        return row.weights_dtype
    if hardware.family.startswith("cdna"):
        return AMD_FP4
    return next((name for name in model.checkpoints if name in {"mxfp4", "nvfp4"}), "nvfp4")


def _cache(row: Observation, weights: NumberFormat) -> KvFormat:
    """Format of the KV cache: where nothing is said, that which goes with the checkpoint."""
    if row.kv_dtype is None:
        return "fp8" if weights in CACHE_FP8 else "bf16"
    return "fp8" if row.kv_dtype == "fp8" else "bf16"


def _layout(row: Observation, model: ModelCard) -> tuple[tuple[int, int, int, int], int, float]:
    """Layout of a replica, replicas, and requests in flight in each.

    With data-parallel attention, a row that states the accelerators describes the whole replica, so that ``tp`` counts
    them; one that does not describes a single rank, and its concurrency is that rank's.
    """
    tp, pp, dp = row.tp or 1, row.pp or 1, row.dp or 1
    circulating, replicas = row.concurrency or 1.0, 1
    if row.dp_kind == "attention":
        if row.accelerators:
            tp = max(row.accelerators // (dp * pp), 1)
        else:
            circulating *= dp
    else:
        if row.dp_kind == "replicas":
            replicas = dp
        elif row.accelerators and row.accelerators > tp * pp:
            replicas = max(row.accelerators // (tp * pp), 1)
        dp = 1
    ep = min(row.ep or 1, tp * dp) if model.sparse else 1
    return (tp, pp, dp, ep), replicas, circulating / replicas


def _spread(row: Observation) -> tuple[float, float] | None:
    if row.length_jitter is None:
        return None
    found = _JITTER.search(row.length_jitter)
    if found is None:
        msg = f"length jitter {row.length_jitter!r} is not known"
        raise InexpressibleError(msg)
    return float(found.group(1)), float(found.group(2))


def _rounds(row: Observation, circulating: float) -> float:
    found = _PROMPTS.match(row.num_prompts or "")
    if found is None:
        return ROUNDS
    return float(found.group(1)) / (1.0 if found.group(2) else circulating)


def traffic(load: Load) -> Workload:
    """Traffic of one replica as a workload without a promise."""

    def lengths(mean: float) -> Lengths:
        if load.spread is None:
            return Lengths(constant=max(round(mean), 1))
        return Lengths(quantiles={0: load.spread[0] * mean, 100: load.spread[1] * mean})

    rate = load.rate or 1.0
    return Workload(
        name="measured",
        model="",
        input=bins(lengths(load.input)),
        output=bins(lengths(load.output)),
        mean_rate=rate,
        hourly=np.full(24, rate),
        peak_rate=rate,
        dispersion=np.ones(3),
        hit_rate=0.0,
        ttft=None,
        tpot=None,
        share=0.99,
        percentile=99.0,
        deadline=None,
        start=None,
        documents=None,
    )


def subject(of: Configuration, load: Load) -> Subject:
    """Join the cards of a configuration with its traffic, as a plan does."""
    checkpoint = checkpoint_of(of.model, of.weights)
    accelerator = chip(of.hardware, of.efficiency, of.weights, of.kv, block=checkpoint.block is not None)
    return Subject(of.model, checkpoint, accelerator, of.engine, blend([traffic(load)]))
