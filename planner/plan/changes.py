"""A case with one field of its scenario changed, by the name that answers use for the field."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from planner.spec.card import Card
from planner.spec.catalog import Case

AnyCard = TypeVar("AnyCard", bound=Card)


def changed(case: Case, field: str, value: object) -> Case:
    """Return the case with ``field`` of its scenario set to ``value``.

    Parameters
    ----------
    case
        A scenario with its cards.
    field
        Names joined by points; of several workloads or inventories the one meant is named, for example
        ``workloads.chat.promise.ttft`` or ``cluster.inventory.h100-sxm.nodes``.
    value
        In SI units, as behind the door; it is not checked again.

    Raises
    ------
    ValueError
        Where there is no such field.

    Examples
    --------
    >>> from planner.spec.catalog import Catalog, resolve
    >>> case = resolve(Catalog().scenario("quickstart"), Catalog())
    >>> changed(case, "workloads.chat.traffic.rate", 12.0).scenario.workloads[0].traffic.rate
    12.0

    """
    return replace(case, scenario=_set(case.scenario, field, value))


def only(case: Case, names: Sequence[str]) -> Case:
    """Return the case with only the workloads ``names``."""
    works = tuple(work for work in case.scenario.workloads if work.name in names)
    return replace(case, scenario=case.scenario.model_copy(update={"workloads": works}))


def _set(card: AnyCard, field: str, value: object) -> AnyCard:
    head, _, rest = field.partition(".")
    if head not in type(card).model_fields:
        message = f"{type(card).__name__} has no field {head!r}"
        raise ValueError(message)
    old = getattr(card, head)
    if not rest:
        return card.model_copy(update={head: value})
    if isinstance(old, Card):
        return card.model_copy(update={head: _set(old, rest, value)})
    if isinstance(old, tuple):
        for place, item in enumerate(old):
            # Names may hold points, so the name is cut off the path, not the path at its points.
            name = getattr(item, "name", None) or getattr(item, "hardware", None)
            if name and rest.startswith(f"{name}."):
                new = _set(item, rest.removeprefix(f"{name}."), value)
                return card.model_copy(update={head: (*old[:place], new, *old[place + 1 :])})
    message = f"{type(card).__name__} has no {head}.{rest}"
    raise ValueError(message)
