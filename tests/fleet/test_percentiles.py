"""Percentiles invert the distribution that the shares come from."""

from dataclasses import replace

import numpy as np
import pytest

from planner.fleet.goodput import shares
from planner.fleet.percentiles import LEVELS, Stage, joint, tpot, ttft
from planner.fleet.waiting import Rows
from planner.replica.candidates import Role

NEVER = 1e9
"""A limit that everyone meets [s]."""


def within(rows: Rows, count: int, limit: float, name: str) -> float:
    """Share of requests within one limit, the other one lifted."""
    work = replace(rows.traffic.workloads[0], ttft=NEVER, tpot=NEVER)
    work = replace(work, ttft=limit) if name == "ttft" else replace(work, tpot=limit)
    traffic = replace(rows.traffic, workloads=(work,))
    return float(shares(replace(rows, traffic=traffic), np.array([count]))[0, 0])


@pytest.fixture(scope="module")
def stages(rows: dict[Role, Rows]) -> list[Stage]:
    of = rows["mixed"]
    return [Stage(of.take(np.array([row])), 2) for row in range(0, len(of.stages), 5)]


def test_a_percentile_inverts_the_distribution(stages: list[Stage]) -> None:
    for stage in stages:
        for name, kind in (("ttft", ttft), ("tpot", tpot)):
            spread = kind(stage, 0, 97.0)
            for level, value in zip((*LEVELS, 0.97), (*spread.levels, spread.at), strict=True):
                # A distribution in bins jumps: below a jump the share is less, above it is more.
                assert within(stage.rows, stage.count, value * 0.985, name) <= level + 0.002
                assert within(stage.rows, stage.count, value * 1.015, name) >= level - 0.002


def test_percentiles_rise_with_their_level_and_hold_the_mean_between_them(stages: list[Stage]) -> None:
    for stage in stages:
        for kind in (ttft, tpot):
            spread = kind(stage, 0, 95.0)
            assert list(spread.levels) == sorted(spread.levels)
            assert spread.at == pytest.approx(spread.levels[LEVELS.index(0.95)])
            assert 0.0 < spread.mean < spread.levels[-1]


def test_longer_times_lengthen_every_percentile_at_least_in_proportion(stages: list[Stage]) -> None:
    for stage in stages:
        for kind in (ttft, tpot):
            one, longer = kind(stage, 0, 95.0), kind(stage, 0, 95.0, 1.2)
            assert longer.mean >= one.mean * 1.2 * (1 - 1e-9)
            assert longer.at >= one.at * 1.2 * 0.99


def test_two_stages_keep_what_both_keep(stages: list[Stage]) -> None:
    alone = [joint((stage,)) for stage in stages[:2]]
    np.testing.assert_allclose(joint((stages[0], stages[1])), alone[0] * alone[1], rtol=1e-12)
