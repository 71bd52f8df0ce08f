"""The simulator's inner loop: single requests take what the step times say, queues follow theory, nothing is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.check.lanes import DRAW, QUEUE, TOKENS, TURN, Requests, Rules, State, Times, begun
from planner.check.simulation import finish
from planner.check.stepping import feed, look
from planner.numeric import Floats

MARKS = np.array([0.0, 1.0, 4096.0])


def clock(
    token: float = 0.0, step: float = 0.0, sequence: float = 0.0, context: float = 0.0, own: float = 0.0
) -> Times:
    """Steps whose time is linear in all there is; ``own``: attention of a chunk by its tokens times those before it."""
    marks = np.array([0.0, 1.0, 4096.0])
    linear = step + token * marks
    return Times(
        tokens=marks,
        linear=linear,
        rows=marks,
        head=0.0 * marks,
        batches=marks,
        contexts=marks,
        decode=sequence * marks[:, np.newaxis] + context * marks[:, np.newaxis] * marks,
        starts=marks,
        chunks=marks,
        prefill=own * marks[:, np.newaxis] * marks,
    )


RULES = Rules(
    budget=512, limit=64, room=1e6, each=0.0, mixed=True, reserve=False, chunked=True, router=TOKENS, stages=1
)


def asked(
    arrival: Floats | list[float], prompt: object, output: object, cached: object = 0, decoded: int = 0
) -> Requests:
    count = len(arrival)

    def whole(value: object) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.broadcast_to(np.asarray(value, np.int64), (count,)).copy()

    draw = np.random.default_rng(1).random(count)
    return Requests(np.asarray(arrival, float), whole(prompt), whole(cached), whole(output), draw, whole(decoded))


def done(q: Requests, r: Rules, t: Times, ranks: int = 1) -> State:
    return finish(begun(ranks, r, len(q.arrival)), q, r, t)


def test_one_request_alone_takes_its_steps() -> None:
    """1,200 tokens in pieces of 512, 512 and 176, then nine steps of one token with 1,200 to 1,208 before it."""
    t = clock(token=1e-3, step=0.01, context=1e-6, own=1e-7)
    s = done(asked([5.0], 1200, 10), RULES, t)
    attention = 1e-7 * (512 * 512 + 1024 * 176)
    assert s.first[0] == pytest.approx(5.0 + 3 * 0.01 + 1.2 + attention)
    decode = 9 * (0.01 + 1e-3) + 1e-6 * sum(1200 + place for place in range(9))
    assert s.end[0] - s.first[0] == pytest.approx(decode)


def test_what_is_cached_is_not_computed() -> None:
    t = clock(token=1e-3)
    assert done(asked([0.0], 1000, 1, cached=900), RULES, t).first[0] == pytest.approx(0.1)
    assert done(asked([0.0], 1000, 1, cached=1000), RULES, t).first[0] == pytest.approx(1e-3), (
        "the last token always is"
    )


def test_a_prompt_rides_with_those_that_decode() -> None:
    """Its tokens lengthen their step; where prompts have steps of their own, those stand still meanwhile."""
    t = clock(token=1e-3, step=0.1)
    q = asked([0.0, 0.15], [1, 300], [50, 2])
    mixed = done(q, RULES, t)
    # The second comes in the step from 0.101 on, so that the step after takes it along.
    assert mixed.first[1] == pytest.approx(0.101 + 0.101 + 0.1 + 0.301)
    apart = done(q, RULES._replace(mixed=False), t)
    assert apart.first[1] == pytest.approx(0.101 + 0.101 + 0.1 + 0.3)
    assert apart.end[0] - mixed.end[0] == pytest.approx(0.1), "one more step, and no more tokens"


def test_prompts_that_wait_share_a_step() -> None:
    t = clock(token=1e-3, step=0.1)
    s = done(asked([0.0] * 6, 200, 1), RULES._replace(mixed=False), t)
    # The first is alone; of the others two and a piece go into each step of 512 tokens.
    assert s.first[0] == pytest.approx(0.3)
    assert s.first[1] == s.first[2] == pytest.approx(0.3 + 0.1 + 0.512)
    assert s.first[5] == pytest.approx(0.3 + 2 * (0.1 + 0.5), rel=0.03)


def test_an_uncut_prompt_waits_for_a_step_that_begins_with_it() -> None:
    t = clock(token=1e-3, step=0.1)
    r = RULES._replace(mixed=False, chunked=False)
    s = done(asked([0.0, 0.0, 0.0], [300, 300, 300], 1), r, t)
    assert np.diff(s.first) == pytest.approx(0.4)
    assert done(asked([0.0], 1300, 1), r, t).first[0] == pytest.approx(1.6), "what is longer than a step is cut"


def test_chunks_follow_each_other_a_stage_apart() -> None:
    """C chunks through p stages take (C + p - 1) / p of C steps (Mooncake, FAST 2025)."""
    t = clock(token=1e-3)
    s = done(asked([0.0], 512 * 6, 1), RULES._replace(stages=4), t)
    assert s.first[0] == pytest.approx((6 + 3) / 4 * 0.512)


def test_a_pipeline_decodes_as_many_at_once_as_it_has_stages() -> None:
    t = clock(step=0.1)
    r = RULES._replace(stages=2, limit=1)
    s = done(asked([0.0, 0.0], 1, 11), r, t)
    assert (s.end - s.first) == pytest.approx([1.0, 1.0])
    assert s.first == pytest.approx([0.1, 0.15])


@pytest.mark.parametrize(
    ("router", "ranks", "wait"), [(DRAW, 1, 2.0), (DRAW, 8, 2.0), (TURN, 8, None), (QUEUE, 8, None)]
)
def test_a_prefill_pool_is_an_m_d_1(router: int, ranks: int, wait: float | None) -> None:
    """Mean wait rho D / (2 (1 - rho)) = 2 at rho = 0.8, D = 1; better routers stay below."""
    rng = np.random.default_rng(7)
    q = asked(np.cumsum(rng.exponential(1.25 / ranks, 200_000)), 512, 1)
    s = done(q, RULES._replace(mixed=False, router=router), clock(token=1 / 512), ranks)
    mean = float(np.mean(s.first - q.arrival - 1.0))
    if wait is None:
        assert mean < 1.0
    else:
        assert mean == pytest.approx(wait, rel=0.05)


@pytest.mark.parametrize("mixed", [True, False])
def test_a_full_cache_sends_the_last_back(*, mixed: bool) -> None:
    """Two of 100 + 60 tokens in a cache of 250: the second gives way, and is computed again; both get on."""
    r = RULES._replace(room=250.0, mixed=mixed)
    s = done(asked([0.0, 0.0], 100, 60), r, clock(step=0.1))
    assert s.again[0] == 0 < s.again[1]
    assert s.end[1] > s.end[0]
    safe = done(asked([0.0, 0.0], 100, 60), r._replace(reserve=True), clock(step=0.1))
    assert safe.again.tolist() == [0, 0]
    assert safe.first[1] > safe.end[0] - 1e-9, "what is promised to the first keeps the second out"


def test_what_one_stage_begins_ends_only_where_there_is_a_place() -> None:
    """Long prompts and long answers in a pipeline with few places: nobody is put beyond the last one."""
    r = RULES._replace(stages=2, limit=2, budget=128)
    s = begun(1, r, 400)
    q = asked([0.01 * place for place in range(400)], 1000, 40)
    t = clock(token=1e-4, step=0.02)
    for who in range(400):
        feed(s, q, r, t, (who, who + 1))
        assert s.running.max() <= r.limit
    look(s, q, r, t, float("inf"))
    assert not np.isnan(s.end).any()


def test_what_no_cache_holds_is_counted() -> None:
    s = done(asked([0.0, 1.0, 2.0], [100, 5000, 100], 10), RULES._replace(room=1000.0), clock(step=0.1))
    assert np.isnan(s.first).tolist() == [False, True, False]
    assert s.counters[3] == 1


def test_decode_pools_only_decode() -> None:
    s = done(asked([0.0], 1000, 11, decoded=1), RULES, clock(token=1e-3, step=0.1))
    assert s.end[0] == pytest.approx(10 * 0.101, abs=0.11)


def test_a_look_between_arrivals_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    q = asked(np.cumsum(rng.exponential(0.2, 500)), rng.integers(1, 2000, 500), rng.integers(1, 80, 500))
    t = clock(token=1e-4, step=0.02)
    plain, seen = begun(2, RULES, 500), begun(2, RULES, 500)
    feed(plain, q, RULES, t, (0, 500))
    for who in range(500):
        running, waiting = look(seen, q, RULES, t, float(q.arrival[who]) - 1e-6)
        assert running >= 0 <= waiting
        feed(seen, q, RULES, t, (who, who + 1))
    for of in (plain, seen):
        assert look(of, q, RULES, t, float("inf")) == (0, 0)
    assert plain.end.tolist() == seen.end.tolist()


traffic = st.lists(
    st.tuples(st.floats(0.0, 2.0), st.integers(1, 3000), st.integers(1, 100), st.integers(0, 3000)),
    min_size=1,
    max_size=40,
)
ways = st.builds(
    Rules,
    budget=st.integers(1, 2048),
    limit=st.integers(1, 16),
    room=st.floats(3200.0, 20_000.0),
    each=st.floats(0.0, 16.0),
    mixed=st.booleans(),
    reserve=st.booleans(),
    chunked=st.booleans(),
    router=st.sampled_from([QUEUE, TOKENS, TURN, DRAW]),
    stages=st.integers(1, 3),
)


@settings(max_examples=150)
@given(traffic, ways, st.integers(1, 3))
def test_every_request_ends_and_gives_back_what_it_held(
    some: list[tuple[float, int, int, int]], r: Rules, ranks: int
) -> None:
    gaps, prompt, output, cached = zip(*some, strict=True)
    q = asked(np.cumsum(gaps), prompt, output, np.minimum(cached, prompt))
    # Mixed steps need room for those that decode.
    r = r._replace(budget=max(r.budget, r.limit + 1))
    s = done(q, r, clock(token=1e-4, step=0.01, sequence=1e-4), ranks)
    assert not np.isnan(s.end).any()
    assert (s.first > q.arrival).all()
    assert (s.end >= s.first - 1e-9).all()
    many = q.output > 1
    assert (s.end[many] - s.first[many] >= 0.01 * (q.output[many] - 1) - 1e-6).all()
    assert np.abs(s.used).max() < 1e-6
    assert np.abs(s.context).max() == 0
    assert s.waiting.tolist() == s.queued.tolist() == [0] * ranks
    assert s.running.sum() == 0
