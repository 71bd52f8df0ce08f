"""Sizing: as few replicas as keep the promise, and reasons where none do."""

from dataclasses import replace

import numpy as np
import pytest

from planner.engine.reasons import Reason
from planner.fleet.goodput import shares
from planner.fleet.pools import Ask, cheapest, kv_bytes, kv_bytes_per_token, required, rows_of, size, transfer_time
from planner.replica.candidates import Replicas, Role


def ask(replicas: Replicas, most: int, part: float = 1.0, width: int = 0) -> Ask:
    n = len(replicas)
    return Ask(np.arange(n), np.full(n, most), np.full(n, part), np.full(n, width))


@pytest.mark.parametrize(("role", "part", "width"), [("mixed", 1.0, 0), ("prefill", 0.5, 1), ("decode", 0.5, 0)])
def test_the_replicas_are_enough_and_one_fewer_is_not(
    replicas: dict[Role, Replicas], role: Role, part: float, width: int
) -> None:
    of = replicas[role]
    held, count, rejected = size(of, ask(of, 8, part, width))
    assert len(count) == (rejected == 0).sum() > 0
    rows = rows_of(of, held.index, held.width if width else None)
    want = required(of.subject.traffic, held.part)
    assert (shares(rows, count) >= want).all()
    more = np.flatnonzero(count > 1)
    fewer = shares(rows.take(more), count[more] - 1)
    low = np.ceil(of.subject.traffic.peak_rate / (0.97 * rows.op.saturation[more]))
    assert ((fewer < want[more]).any(axis=1) | (count[more] <= low)).all()


def test_replicas_that_the_load_alone_outgrows_lack_nodes_not_a_share(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    many = replace(of.subject, traffic=replace(of.subject.traffic, peak_rate=1e5))
    _, count, rejected = size(replace(of, subject=many), ask(of, 8))
    assert len(count) == 0
    usable = of.rejected == 0
    assert (rejected[usable] == int(Reason.NODES)).all()


def test_no_room_is_a_lack_of_nodes(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    _, count, rejected = size(of, ask(of, 0))
    assert len(count) == 0
    assert (rejected[of.rejected == 0] == int(Reason.NODES)).all()
    np.testing.assert_array_equal(rejected[of.rejected != 0], of.rejected[of.rejected != 0])


def test_a_promise_that_an_idle_replica_misses_is_named(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    work = replace(of.subject.traffic.workloads[0], ttft=1e-4, tpot=1e-4)
    hard = replace(of.subject, traffic=replace(of.subject.traffic, workloads=(work,)))
    _, count, rejected = size(replace(of, subject=hard), ask(of, 8))
    assert len(count) == 0
    assert (rejected[of.rejected == 0] == int(Reason.TTFT | Reason.TPOT)).all()


def test_a_pool_that_may_miss_less_takes_no_fewer_replicas(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    counts = []
    for part in (1.0, 0.5, 0.25):
        held, count, _ = size(of, ask(of, 8, part))
        column = np.full(len(of), 99)
        column[held.index] = count
        counts.append(column)
    assert (np.diff(np.array(counts), axis=0) >= 0).all()


def test_the_cheapest_of_each_layout_is_the_first_with_the_fewest_replicas(replicas: dict[Role, Replicas]) -> None:
    of = replicas["mixed"]
    held, count, _ = size(of, ask(of, 8))
    chosen = cheapest(of, held.index, count)
    layouts = of.row[held.index]
    assert sorted(layouts[chosen]) == sorted(set(layouts.tolist()))
    for place in chosen:
        alike = np.flatnonzero(layouts == layouts[place])
        assert count[place] == count[alike].min()
        assert place == alike[np.argmin(count[alike])]


def test_kv_of_llama_8b_is_that_of_its_card(replicas: dict[Role, Replicas]) -> None:
    """Keys and values, 32 layers, 8 heads of 128, 2 bytes: 131,072 bytes a token."""
    of = replicas["prefill"]
    assert kv_bytes_per_token(of) == pytest.approx(131_072)
    assert kv_bytes(of, np.array([1600.0]))[0] == pytest.approx(1600 * 131_072)


def test_more_links_move_kv_faster_and_more_tokens_slower(replicas: dict[Role, Replicas]) -> None:
    of = replicas["prefill"]
    times = transfer_time(of, np.array([100.0, 1000.0, 10_000.0]), np.array([[1.0], [2.0], [4.0]]))
    assert (np.diff(times, axis=1) > 0).all()
    assert (np.diff(times, axis=0) < 0).all()
