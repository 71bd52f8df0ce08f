"""Step times of one lane as tables: the same functions as a plan's, evaluated where a simulator steps.

Between points the tables are linear. Decode attention is linear in the mean context and in the batch but for kinks
where a window or a roof binds, and so is prefill attention in the tokens before a chunk; what is left errs by less
than 1 % (tests/check/test_steptimes.py).
"""

from typing import TYPE_CHECKING

import numpy as np

from planner.check.lanes import Rules, Times
from planner.engine.memory import kv_per_sequence
from planner.engine.step import decode_attention, head, prefill_attention
from planner.replica.passes import TOKENS

if TYPE_CHECKING:
    from planner.numeric import Floats
    from planner.replica.candidates import Replicas

ROWS = np.array([0, 1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096], float)
"""Sequences of a lane at which the head and decode attention are evaluated."""
CONTEXTS = np.array([0, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576], float)
"""Mean contexts."""
STARTS = np.array([0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576], float)
"""Tokens before a chunk."""
CHUNKS = np.unique(np.round(np.geomspace(1.0, 32768.0, 61)))
"""Tokens of a chunk."""


def times(replicas: "Replicas", index: int) -> Times:
    """Tabulate the steps of one candidate."""
    m, passes = replicas.machine, replicas.passes
    row = int(replicas.row[index])
    chosen = np.array([row])

    def of(table: "Floats") -> "Floats":
        """Row of the candidate, where a table has one for each layout."""
        return np.asarray(table[row] if len(table) > 1 else table[0])

    shape = (len(m.layouts), 1)
    sampled = np.broadcast_to(head(m, ROWS * np.ones(shape)).total, (len(m.layouts), len(ROWS)))[row].copy()
    sampled[0] = 0.0
    decode = np.zeros((len(ROWS), len(CONTEXTS)))
    for place, context in enumerate(CONTEXTS):
        mean = (np.array([context]), np.ones(1))
        decode[1:, place] = of(np.atleast_2d(decode_attention(m, ROWS[1:] * np.ones(shape), mean).total))
    prefill = np.array([prefill_attention(m, np.full(len(CHUNKS), s), CHUNKS, CHUNKS, chosen).total[0] for s in STARTS])
    return Times(
        TOKENS, np.ascontiguousarray(passes.tokens[row]), ROWS, sampled, ROWS, CONTEXTS, decode, STARTS, CHUNKS, prefill
    )


def rules(replicas: "Replicas", index: int, router: int) -> Rules:
    """How a rank of a candidate schedules; its limit of sequences is shared evenly by the stages of its pipeline."""
    m, engine = replicas.machine, replicas.subject.engine
    row, scheduling = int(replicas.row[index]), engine.scheduling
    stages = int(m.layouts.pp[row])
    block = engine.caching.block
    far = np.array([1024.0, 2048.0]) * 16.0 * block
    short, long = kv_per_sequence(m, far, block)[row]
    token = (long - short) / (far[1] - far[0])
    state = max(short - token * far[0], 0.0)
    prefill_only = replicas.role == "prefill"
    return Rules(
        budget=int(replicas.budget[index]) if replicas.role != "decode" else int(TOKENS[-1]),
        limit=max(int(replicas.limit[index]) // stages, 1),
        room=float(replicas.memory.kv[index]) / token,
        each=float(state / token + (block - 1) / 2.0),
        mixed=replicas.role == "decode" or scheduling.steps == "mixed",
        reserve=scheduling.admission == "reserve" and not prefill_only,
        chunked=scheduling.chunked,
        router=router,
        stages=stages,
    )


def ranks(replicas: "Replicas", index: int) -> int:
    """Attention ranks of one replica."""
    return int(replicas.machine.layouts.dp[replicas.row[index]])
