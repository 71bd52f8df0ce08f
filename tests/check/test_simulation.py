"""Plans replayed: the shipped ones hold, the answer is valid, and a seed gives the same answer."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from planner.check.simulation import replay, simulate
from planner.cli.main import run
from planner.errors import NoPlanError
from planner.plan.answer import to_json
from planner.plan.changes import changed
from planner.plan.offers import Offer
from planner.plan.recommend import plan_of
from planner.plan.search import search
from planner.report.reference import schema
from planner.report.render import render
from planner.spec.catalog import Case, Catalog, resolve

CATALOG = Catalog()
CLOSE = 0.01
"""How far below the promise a replayed share may lie."""


def shipped(name: str) -> Case:
    return resolve(CATALOG.scenario(name), CATALOG)


@pytest.mark.parametrize("name", CATALOG.names("scenario"))
def test_the_plan_of_a_shipped_scenario_holds(name: str) -> None:
    answer = simulate(shipped(name), "test", seed=2, hours=0.5)
    for one in answer.workloads:
        assert one.simulated.rejected == 0
        assert one.simulated.goodput_share >= (one.predicted.goodput_share_required or 1.0) - CLOSE, one.name


def test_an_answer_is_valid_and_comes_again() -> None:
    one, other = (simulate(shipped("orbit"), "test", seed=4, hours=0.05) for _ in range(2))
    assert to_json(one) == to_json(other)
    assert to_json(one) != to_json(simulate(shipped("orbit"), "test", seed=5, hours=0.05))
    jsonschema.validate(json.loads(to_json(one)), schema("simulate"), jsonschema.Draft202012Validator)
    assert one.left_out == ("nightly",)
    text = render(one, "markdown")
    assert "agents" in text
    assert "nightly: work with a deadline is not replayed" in text


def test_latencies_are_in_order() -> None:
    for one in simulate(shipped("orbit"), "test", hours=0.1).workloads:
        for seen in (one.simulated.ttft, one.simulated.tpot):
            levels = [seen.p50, seen.p90, seen.p95, seen.p99]
            assert all(low <= high for low, high in pairwise(levels))


def fewer(offer: Offer, count: int) -> Offer:
    """Return an offer whose pools have ``count`` replicas."""
    return replace(offer, pools=tuple(replace(pool, count=count) for pool in offer.pools))


def test_far_fewer_replicas_do_not_hold() -> None:
    (service,) = plan_of(shipped("cdna3-chat"))
    offer = service.offer
    (member,) = offer.group.interactive
    assert offer.pools[0].count > 1
    done = replay(fewer(offer, 1), np.random.default_rng(1), 0.3)
    enough = replay(offer, np.random.default_rng(1), 0.3)
    limit = member.numbers.ttft or 0.0
    assert np.mean(done.ttft > limit) > 0.5 > np.mean(enough.ttft > limit)


@pytest.mark.parametrize("name", ["ampere-assistant", "rtx-documents"])
def test_a_split_pool_hands_over(name: str) -> None:
    """First tokens come from the prefill pool and the link; later ones from the decode pool."""
    offer = next(one for one in search(shipped(name)).offers if len(one.pools) == 2)
    done = replay(offer, np.random.default_rng(1), 0.2)
    (member,) = offer.group.interactive
    assert not np.isnan(done.ttft).any()
    good = (done.ttft <= (member.numbers.ttft or 0.0)) & ~(done.tpot > (member.numbers.tpot or 0.0))
    assert good.mean() >= member.numbers.share - 0.03


def test_no_plan_is_told() -> None:
    with pytest.raises(NoPlanError, match="no plan to simulate"):
        simulate(changed(shipped("quickstart"), "workloads.chat.promise.ttft", 0.001), "test")


def test_the_command_says_whether_promises_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "quickstart", "--hours", "0.05", "--seed", "3"]) == 0
    shown = capsys.readouterr()
    assert "every promise holds" in shown.out
    assert not shown.err


def test_a_trace_takes_the_place_of_drawn_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text(
        "arrival,input,output\n" + "".join(f"{0.1 * place:.1f},500,20\n" for place in range(1000)), encoding="utf-8"
    )
    arguments = ["simulate", "quickstart", "--trace", str(tmp_path / "t.csv"), "--format", "json"]
    assert run(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["requests"] == 1000
    assert answer["workloads"][0]["simulated"]["offered_rps"] == pytest.approx(10.0, rel=0.02)


@pytest.mark.parametrize(
    ("scenario", "trace", "words"),
    [
        ("quickstart", "talk=t.csv", "no interactive workload 'talk'"),
        ("orbit", "t.csv", "does not say which workload"),
        ("orbit", "nightly=t.csv", "no interactive workload 'nightly'"),
        ("quickstart", "absent.csv", "cannot be read"),
    ],
)
def test_a_trace_is_of_a_workload(scenario: str, trace: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", scenario, "--trace", trace]) == 2
    assert words in capsys.readouterr().err
