"""``planner predict``: one exact configuration under one load."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from planner.cli.options import CardsOption, FormOption

if TYPE_CHECKING:
    from planner.spec.observation import Observation


def predict(  # noqa: PLR0913, PLR0917 - one option for each thing that a configuration is made of
    context: typer.Context,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A model card, or a repository.")] = None,
    hardware: Annotated[str | None, typer.Argument(metavar="HARDWARE", help="A hardware card.")] = None,
    input_tokens: Annotated[
        int | None, typer.Option("--input", min=1, help="Input tokens of a request.", show_default=False)
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option("--output", min=1, help="Output tokens of a request.", show_default=False)
    ] = None,
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
    serve: Annotated[
        str | None, typer.Option("--serve", metavar="COMMAND", help="The command that serves: 'vllm serve ...'.")
    ] = None,
    bench: Annotated[
        str | None, typer.Option("--bench", metavar="COMMAND", help="The command that loads: 'vllm bench serve ...'.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--hardware", metavar="HARDWARE", help="A hardware card, beside --serve.")
    ] = None,
    form: FormOption = "terminal",
    to: Annotated[
        Path | None, typer.Option("--to", "-o", metavar="FILE", help="Write the answer to this file instead.")
    ] = None,
    cards: CardsOption = None,
) -> None:
    """Predict TTFT, TPOT and throughput of one exact configuration, with parts and memory.

    Name MODEL and HARDWARE with the options of a configuration, or read the commands that are run: --hardware with
    --serve and --bench.

    Exit status: 0 once answered; 1 the engine cannot load it; 2 the input is at fault.
    """
    from planner import __version__
    from planner.check.single import Flags, Settings, single
    from planner.cli.output import look, write
    from planner.report.render import render
    from planner.spec.bands import shipped_bands
    from planner.spec.catalog import Catalog

    catalog = Catalog(tuple(cards or ()))
    name, _, version = engine.partition("@")
    flags: Flags | None = None
    if serve is not None or bench is not None or on is not None:
        from planner.check.asked import asked

        said = _commands(context, serve, bench, on)
        catalog.hardware(said[2])
        found = asked(said[0], said[1], said[2], version or None, catalog)
        if _given(context, "engine") and catalog.engine(name).name != found.row["engine"]:
            _refuse(f"--serve runs {found.row['engine']}, not the engine {name!r}; leave --engine out", name)
        row, settings, flags = _observation(dict(found.row)), found.settings, found.flags
    else:
        load = _loaded(concurrency=concurrency, rate=rate, batch=batch)
        for what, value in (
            ("MODEL", model),
            ("HARDWARE", hardware),
            ("--input", input_tokens),
            ("--output", output_tokens),
        ):
            if value is None:
                _refuse(f"{what} is missing; say it, or read commands with --hardware, --serve and --bench", what)
        # Names that are not known are told with what was meant.
        catalog.model(str(model)), catalog.hardware(str(hardware)), catalog.engine(name)
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
                "request_rate": rate,
            }
            | load
        )
        settings = Settings(token_budget, max_batch)
    answer = single(row, catalog, shipped_bands(), __version__, settings, flags)
    write(render(answer, form, **look(to)), to)


BESIDE = {"serve", "bench", "on", "engine", "form", "to", "cards"}
"""What may be said where commands are read."""


def _refuse(problem: str, value: str) -> NoReturn:
    from planner.errors import InputError

    raise InputError.of(problem, value=value)


def _given(context: typer.Context, name: str) -> bool:
    """Whether an option was on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _commands(
    context: typer.Context, serve: str | None, bench: str | None, hardware: str | None
) -> tuple[str, str, str]:
    """Return the two commands and the hardware; all are needed, and nothing else may say the same."""
    for name, value in (("--serve", serve), ("--bench", bench), ("--hardware", hardware)):
        if value is None:
            _refuse(f"{name} is missing; --serve, --bench and --hardware go together", name)
    for option in context.command.params:
        if option.name not in BESIDE and option.name and _given(context, option.name):
            spelled = option.opts[0] if option.opts[0].startswith("-") else option.name.upper()
            _refuse(f"{spelled} is said by --serve or --bench already; leave it out", spelled)
    return str(serve), str(bench), str(hardware)


def _loaded(*, concurrency: int | None, rate: float | None, batch: int | None) -> dict[str, object]:
    """Say how the replica is loaded; exactly one of the three is given."""
    kinds = {"concurrency": "fixed_concurrency", "rate": "open_loop", "batch": "decode"}
    values = {"concurrency": concurrency, "rate": rate, "batch": batch}
    given = [name for name, value in values.items() if value]
    if len(given) != 1:
        said = "none of them" if not given else " and ".join(f"--{name}" for name in given)
        _refuse(f"one of --concurrency, --rate and --batch is needed, not {said}; say --concurrency 32", said)
    return {"concurrency": concurrency or batch, "kind": kinds[given[0]]}


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
