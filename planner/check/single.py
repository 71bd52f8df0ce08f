"""``predict``: one exact configuration under one load, by the models that ``accuracy`` is measured with."""

from dataclasses import dataclass, replace

import numpy as np

from planner.check.expression import Expressed, InexpressibleError, express, subject
from planner.check.kinds import predict
from planner.engine import layouts as lay
from planner.engine.reasons import tally
from planner.errors import InputError, NoPlanError
from planner.plan.anatomy import decode_pass, memory_parts, prefill_pass
from planner.plan.explanation import AcceleratorMemory, Pass
from planner.plan.offers import PoolChoice
from planner.plan.predicted import Part
from planner.replica.candidates import Replicas, Subject, bench, judge
from planner.spec.bands import Bands
from planner.spec.catalog import Catalog
from planner.spec.observation import Observation


class ConfigurationLayout(Part):
    """How the replica is cut."""

    tp: int
    pp: int
    dp: int
    ep: int


class LoadPoint(Part):
    """What the replica is given."""

    input: float
    """Mean input [tokens]."""
    output: float
    """Mean output [tokens]."""
    concurrency: float | None
    """Requests in flight."""
    rate: float | None
    """Arrivals [req/s]."""
    batch: float | None
    """Sequences of one static batch."""


class Banded(Part):
    """A figure with its 80 % band."""

    value: float
    band: tuple[float, float]


class Assumed(Part):
    """Something that was not stated."""

    name: str
    value: str
    source: str


class Flags(Part):
    """What the commands said."""

    used: tuple[str, ...]
    unknown: tuple[str, ...]
    """Flags and variables that are not known, and may change the result."""


class Prediction(Part):
    """The answer of ``predict``; figures in SI units."""

    schema_version: str
    planner_version: str
    model: str
    hardware: str
    engine: str
    weights_dtype: str
    kv_dtype: str
    layout: ConfigurationLayout
    accelerators: int
    """Accelerators of the replica."""
    token_budget: int
    """Most tokens of a step of one rank."""
    max_batch: int
    """Most sequences that one rank decodes together."""
    point: LoadPoint
    prefill: Banded
    """One prompt alone, or the prompts of a static batch [s]."""
    ttft: Banded | None
    """Mean time to first token [s]; null for a static batch."""
    tpot: Banded
    """Mean time per output token [s]."""
    output_tokens_per_s: Banded
    """Of the replica."""
    decode_step: Pass
    """One decode step at the batch, operator by operator."""
    prefill_step: Pass
    """Prefill of one prompt alone, operator by operator."""
    memory: AcceleratorMemory
    """Of one accelerator [B]."""
    assumptions: tuple[Assumed, ...]
    flags: Flags | None
    """Of the commands that were read; null where there were none."""


def replicas(on: Subject, layout: tuple[int, int, int, int]) -> Replicas:
    """Judge the one candidate of a layout (tp, pp, dp, ep) at the engine's own limits."""
    table = lay.Layouts.of([layout])
    legal = lay.legality(on.model, on.checkpoint, table, on.chip, on.engine.parallelism)
    limits = on.engine.scheduling
    zero = np.zeros(1, np.int64)
    return judge(bench(on, table, legal), "mixed", (zero, zero + limits.token_budget, zero + limits.max_batch))


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of the engine where they are not its defaults."""

    token_budget: int | None = None
    max_batch: int | None = None
    memory: float | None = None
    """Share of the memory that the engine may take, or of what it leaves free, as its card says."""

    def on(self, one: Expressed) -> Expressed:
        """Return a configuration with these settings."""
        asked = {"token_budget": self.token_budget, "max_batch": self.max_batch}
        changed = {name: value for name, value in asked.items() if value is not None}
        engine = one.configuration.engine
        behaviour: dict[str, object] = {"scheduling": engine.scheduling.model_copy(update=changed)}
        if self.memory is not None:
            behaviour["reserve"] = engine.reserve.model_copy(update={"fraction": self.memory})
        configuration = replace(one.configuration, engine=engine.model_copy(update=behaviour))
        return replace(one, configuration=configuration)


def _figures(one: Expressed, catalog: Catalog, bands: Bands, settings: Settings) -> dict[str, Banded]:
    """Predict what an answer holds, each as a measurement of its kind would be."""
    kind = one.row.kind
    wanted = {
        "prefill": ("prefill", "prefill_time"),
        "tpot": (kind, "tpot_mean"),
        "ttft": (kind, "ttft_mean"),
        "output": (kind, "output_tokens_per_s"),
    }
    rows = {name: one.row.model_copy(update={"kind": of, "metric": metric}) for name, (of, metric) in wanted.items()}
    if kind != "decode":
        rows["prefill"] = rows["prefill"].model_copy(update={"concurrency": 1.0})
    values = predict([settings.on(express(row, catalog)) for row in rows.values()]).tolist()
    model, family = one.configuration.model, one.configuration.hardware.family
    near = bands.near(one.configuration.efficiency.calibration, model.name, family)
    out = {}
    for (name, row), value in zip(rows.items(), values, strict=True):
        low, high = near.of(row.kind, row.metric, family, sparse=model.sparse)
        out[name] = Banded(value=value, band=(value * low, value * high))
    return out


def single(
    base: Observation,
    catalog: Catalog,
    bands: Bands,
    version: str,
    settings: Settings | None = None,
    flags: Flags | None = None,
) -> Prediction:
    """Predict one configuration.

    ``base`` describes it as a measurement does; its kind says how the replica is loaded, its metric and value are not
    looked at.

    Raises
    ------
    InputError
        Where the cards cannot express it.
    NoPlanError
        Where the engine cannot load it.

    """
    settings = settings or Settings()
    # Who asks about a replica means the engine of today, and the cache that it takes without a flag.
    newest = catalog.engine(base.engine).versions[-1].since
    meant = {"engine_version": base.engine_version or newest, "kv_dtype": base.kv_dtype or "bf16"}
    asked = base.model_copy(update=meant)
    try:
        one = settings.on(express(asked, catalog))
    except InexpressibleError as reason:
        raise InputError.of(str(reason), value=base.model) from reason
    judged = replicas(subject(one.configuration, one.load), one.configuration.layout)
    if judged.rejected[0]:
        why = ", ".join(tally(judged.rejected))
        message = f"{base.engine} cannot load {base.model} so on {base.hardware}: {why}"
        raise NoPlanError(message)
    choice = PoolChoice(judged, 0, 1, 0)
    made = _figures(one, catalog, bands, settings)
    # By Little's law so many decode.
    ends = made["output"].value / base.output_tokens
    batch = ends * max(base.output_tokens - 1.0, 0.0) * made["tpot"].value
    if base.kind == "decode":
        batch = one.load.circulating
    of, limits = one.configuration, judged.subject.engine.scheduling
    tp, pp, dp, ep = of.layout
    return Prediction(
        schema_version="1",
        planner_version=version,
        model=of.model.name,
        hardware=of.hardware.name,
        engine=f"{of.family} {base.engine_version or of.engine.since}",
        weights_dtype=of.weights,
        kv_dtype=of.kv,
        layout=ConfigurationLayout(tp=tp, pp=pp, dp=dp, ep=ep),
        accelerators=of.accelerators,
        token_budget=limits.token_budget,
        max_batch=limits.max_batch,
        point=LoadPoint(
            input=base.input_tokens,
            output=base.output_tokens,
            concurrency=base.concurrency if base.kind == "fixed_concurrency" else None,
            rate=base.request_rate,
            batch=base.concurrency if base.kind == "decode" else None,
        ),
        prefill=made["prefill"],
        ttft=None if base.kind == "decode" else made["ttft"],
        tpot=made["tpot"],
        output_tokens_per_s=made["output"],
        decode_step=decode_pass(choice, max(batch, 1.0)),
        prefill_step=prefill_pass(choice, 0.0),
        memory=memory_parts(choice),
        assumptions=_assumed(base, one, judged),
        flags=flags,
    )


def _assumed(base: Observation, one: Expressed, replicas: Replicas) -> tuple[Assumed, ...]:
    """List what was not stated, and efficiencies that nobody measured on this pair."""
    of = one.configuration
    out = []
    if base.weights_dtype is None:
        out.append(Assumed(name="weights", value=of.weights, source="the checkpoint's own format"))
    if base.kv_dtype is None:
        out.append(Assumed(name="KV cache", value=of.kv, source="16 bits where nothing is said"))
    if base.engine_version is None:
        out.append(Assumed(name="engine version", value=of.engine.since, source="the newest that is known"))
    if base.kind == "fixed_concurrency" and base.num_prompts is None:
        out.append(Assumed(name="rounds", value=f"{one.load.rounds:g}", source="requests of each place of the loop"))
    if of.efficiency.calibration is not None:
        point = {"input": base.input_tokens, "output": base.output_tokens}
        if base.concurrency is not None:
            point["in_flight"] = one.load.circulating
        tp, pp, _, ep = of.layout
        degrees: dict[str, float] = {"tp": tp, "pp": pp, "ep": ep}
        formats = {"models": of.model.name, "weights": of.weights, "kv": of.kv}
        name = f"calibration {of.efficiency.calibration.name}"
        beyond = of.efficiency.calibration.valid.beyond(**formats, **degrees, **point)
        out += [Assumed(name=name, value="extrapolated", source=problem) for problem in beyond]
    names = replicas.subject.chip.assumed
    source = f"not measured for {of.family} on {of.hardware.name}"
    return (*out, *(Assumed(name=name, value="efficiency", source=source) for name in names))
