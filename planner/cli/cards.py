"""``planner cards``: the documents that plans are made from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from planner.cli.options import CardsOption, FormOption, OutputOption

if TYPE_CHECKING:
    from planner.spec.card import Card
    from planner.spec.catalog import Catalog

Kind = Literal["model", "hardware", "engine", "efficiency", "scenario"]
"""Kinds of documents, as :data:`planner.spec.catalog.KINDS` has them; named here since importing those takes long."""
Schema = Literal[
    "model",
    "hardware",
    "engine",
    "efficiency",
    "scenario",
    "recommend",
    "explain",
    "predict",
    "accuracy",
    "calibrate",
    "simulate",
]
"""What has a JSON Schema: documents that planner reads, and the answers of its commands."""

KindOption = Annotated[Kind | None, typer.Option("--kind", "-k", help="Only cards of this kind.")]

app = typer.Typer(help="List, show and describe the cards that plans are made from.", rich_markup_mode=None)


@app.command("list")
def list_cards(
    kind: KindOption = None, form: FormOption = "terminal", output: OutputOption = None, cards: CardsOption = None
) -> None:
    """List the cards: models, hardware, engines, efficiencies and scenarios."""
    from tabulate import tabulate

    from planner.cli.output import write
    from planner.spec.catalog import Catalog, shipped

    catalog, own = Catalog(tuple(cards or ())), shipped()
    rows = [
        {
            "kind": of,
            "name": name,
            "title": _title(_find(catalog, of, name)),
            "origin": "shipped" if catalog.file(of, name).is_relative_to(own) else "own",
        }
        for of in _kinds(kind)
        for name in catalog.names(of)
    ]
    if form == "json":
        write(_json({"schema_version": "1", "cards": rows}), output)
    else:
        style = "github" if form == "markdown" else "simple"
        write(tabulate(rows, headers="keys", tablefmt=style, disable_numparse=True), output)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a card; a model also goes by its repository.")],
    kind: KindOption = None,
    form: FormOption = "terminal",
    output: OutputOption = None,
    cards: CardsOption = None,
) -> None:
    """Show a card: its numbers with their units and sources, defaults included."""
    from planner.cli.output import write
    from planner.spec.catalog import Catalog
    from planner.spec.writing import as_yaml

    catalog = Catalog(tuple(cards or ()))
    of = _kind_of(catalog, name, kind)
    card = _find(catalog, of, name)
    if form == "json":
        write(_json(card.model_dump(mode="json", exclude_none=True)), output)
        return
    text = as_yaml(card)
    write(f"# {_title(card)} ({of})\n\n```yaml\n{text}```\n" if form == "markdown" else text, output)


@app.command()
def schema(kind: Annotated[Schema, typer.Argument(help="What to describe.")], output: OutputOption = None) -> None:
    """Write the JSON Schema of a kind of card, for editors, or of a command's answer, for programs."""
    from planner.cli.output import write
    from planner.spec.catalog import KINDS

    document = next((card for name, card in KINDS.items() if name == kind), None)
    if document is not None:
        from planner.spec.schema import json_schema

        write(_json(json_schema(document)), output)
        return
    from planner.report.reference import schema as answer

    write(_json(answer(kind)), output)


def _kinds(kind: Kind | None) -> Sequence[Kind]:
    from planner.spec.catalog import KINDS

    return tuple(KINDS) if kind is None else (kind,)


def _kind_of(catalog: "Catalog", name: str, kind: Kind | None) -> Kind:
    """Return the kind of a name. Raises :class:`planner.errors.InputError` where none, or more than one, has it."""
    from planner.errors import InputError
    from planner.spec.complaints import did_you_mean

    found = [of for of in _kinds(kind) if _has(catalog, of, name)]
    if len(found) == 1:
        return found[0]
    if found:
        problem = f"{name!r} is the name of several cards; add --kind {' or --kind '.join(found)}"
    else:
        known = [known for of in _kinds(kind) for known in catalog.names(of)]
        problem = f"there is no {kind or ''} card {name!r}; {did_you_mean(name, known)}".replace("  ", " ")
    raise InputError.of(problem, value=name)


def _has(catalog: "Catalog", kind: Kind, name: str) -> bool:
    """Tell whether a card of this kind has this name, repository or alias."""
    from planner.errors import InputError

    try:
        catalog.file(kind, name)
    except InputError:
        return False
    return True


def _find(catalog: "Catalog", kind: Kind, name: str) -> "Card":
    """Return the card of a kind and name."""
    match kind:
        case "model":
            return catalog.model(name)
        case "hardware":
            return catalog.hardware(name)
        case "engine":
            return catalog.engine(name)
        case "efficiency":
            hardware, _, engine = name.partition("--")
            return catalog.efficiency(hardware, engine)
        case "scenario":
            return catalog.scenario(catalog.file(kind, name))


def _title(card: "Card") -> str:
    """Return what people call a card."""
    from planner.spec.efficiency import EfficiencyCard

    if isinstance(card, EfficiencyCard):
        return f"{card.engine} {card.version} on {card.hardware}"
    return str(getattr(card, "title", ""))


def _json(value: object) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)
