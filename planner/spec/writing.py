"""Cards as the YAML that planner reads."""

import yaml

from planner.spec.card import Card

WIDEST = 10**6
"""Characters of the longest line: one group of numbers stays on one line."""


def as_yaml(card: Card) -> str:
    """Write a card, a source on each line and a group of numbers on each."""

    def dump(key: str, value: object) -> str:
        grouped = key != "sources" and isinstance(value, dict | list)
        flow = None if grouped else False
        return yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True, width=WIDEST, default_flow_style=flow)

    return "".join(dump(key, value) for key, value in card.model_dump(mode="json", exclude_none=True).items())
