"""``planner predict``: one exact configuration under one load."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.options import CardsOption, FormOption

if TYPE_CHECKING:
    from planner.spec.observation import Observation


def predict(  # noqa: PLR0913, PLR0917 - one option for each thing that a configuration is made of
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model card, or a repository.")],
    hardware: Annotated[str, typer.Argument(metavar="HARDWARE", help="A hardware card.")],
    input_tokens: Annotated[int, typer.Option("--input", min=1, help="Input tokens of a request.")],
    output_tokens: Annotated[int, typer.Option("--output", min=1, help="Output tokens of a request.")],
    engine: Annotated[str, typer.Option("--engine", help="An engine, with its version: vllm@0.19.")] = "vllm",
    tp: Annotated[int, typer.Option("--tp", min=1, help="Tensor-parallel degree.")] = 1,
    pp: Annotated[int, typer.Option("--pp", min=1, help="Pipeline stages.")] = 1,
    ep: Annotated[int, typer.Option("--ep", min=1, help="Groups that experts are spread over.")] = 1,
    dp: Annotated[int, typer.Option("--dp", min=1, help="Ranks of data-parallel attention.")] = 1,
    weights: Annotated[str | None, typer.Option("--weights", help="Number format of the weights.")] = None,
    kv: Annotated[str | None, typer.Option("--kv", help="Number format of the KV cache.")] = None,
    token_budget: Annotated[int | None, typer.Option("--token-budget", min=1, help="Most tokens of a step.")] = None,
    max_batch: Annotated[int | None, typer.Option("--max-batch", min=1, help="Most sequences of a step.")] = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, help="Requests in flight.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", min=1e-6, help="Arrivals in a second.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Sequences of one static batch.")] = None,
    form: FormOption = "terminal",
    to: Annotated[
        Path | None, typer.Option("--to", "-o", metavar="FILE", help="Write the answer to this file instead.")
    ] = None,
    cards: CardsOption = None,
) -> None:
    """Predict TTFT, TPOT and throughput of one exact configuration, with parts and memory.

    Exit status: 0 once answered; 1 the engine cannot load it; 2 the input is at fault.
    """
    from planner import __version__
    from planner.check.single import Settings, single
    from planner.cli.output import look, write
    from planner.errors import InputError
    from planner.report.render import render
    from planner.spec.bands import shipped_bands
    from planner.spec.catalog import Catalog

    given = [name for name, value in (("concurrency", concurrency), ("rate", rate), ("batch", batch)) if value]
    if len(given) != 1:
        said = "none of them" if not given else " and ".join(f"--{name}" for name in given)
        problem = f"one of --concurrency, --rate and --batch is needed, not {said}; say --concurrency 32"
        raise InputError.of(problem)
    kind = {"concurrency": "fixed_concurrency", "rate": "open_loop", "batch": "decode"}[given[0]]
    name, _, version = engine.partition("@")
    catalog = Catalog(tuple(cards or ()))
    # Names that are not known are told with what was meant.
    catalog.model(model), catalog.hardware(hardware), catalog.engine(name)
    row = _observation(
        {
            "model": model,
            "hardware": hardware,
            "engine": name,
            "engine_version": version,
            "tp": tp,
            "pp": pp,
            "ep": ep,
            "dp": dp,
            # Attention ranks are stated with the accelerators of all of them.
            "dp_kind": "attention" if dp > 1 else None,
            "accelerators": tp * pp * dp,
            "weights_dtype": weights,
            "kv_dtype": kv,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "concurrency": concurrency or batch,
            "request_rate": rate,
            "kind": kind,
        }
    )
    answer = single(row, catalog, shipped_bands(), __version__, Settings(token_budget, max_batch))
    write(render(answer, form, **look(to)), to)


def _observation(values: dict[str, object]) -> "Observation":
    """Describe the configuration as a measurement would; its value is what is asked for."""
    from pydantic import ValidationError

    from planner.errors import Fault, InputError, shorten
    from planner.spec.observation import Observation

    try:
        return Observation.model_validate(values | {"metric": "tpot_mean", "value": 1.0, "unit": "s"})
    except ValidationError as error:
        flags = {"weights_dtype": "--weights", "kv_dtype": "--kv"}
        raise InputError(
            Fault(
                "",
                None,
                flags.get(str(one["loc"][0]), str(one["loc"][0])),
                shorten(one["input"]),
                f"{shorten(one['input'])} {one['msg'].replace('Input should be', 'should be')}",
            )
            for one in error.errors(include_url=False)
        ) from error
