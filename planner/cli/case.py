"""From the names on a command line to a case: scenario and cards in hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.spec.catalog import Case


def load(scenario: str, cards: Sequence[Path] | None) -> "Case":
    """Find a scenario by path or name, and every card that it names; own folders come before shipped ones.

    Raises :class:`planner.errors.InputError` with all that is at fault.
    """
    from planner.spec.catalog import Catalog, resolve

    catalog = Catalog(tuple(cards or ()))
    return resolve(catalog.scenario(scenario), catalog, catalog.scenario_file(scenario))
