"""A made-up recommendation and explanation, rich enough to show everything that a report can say."""

import pytest

from planner.plan.answer import (
    Assumption,
    Candidates,
    Change,
    CheckItem,
    ClusterUse,
    Cost,
    Failure,
    Infeasible,
    Kv,
    Layout,
    Memory,
    NodeLost,
    Operations,
    Pool,
    Recommendation,
    RunnerUp,
    Sensitivity,
    Signal,
    Solver,
    WorkloadPlan,
)
from planner.plan.explanation import (
    AcceleratorMemory,
    Basis,
    ExplainedPool,
    Explanation,
    OperatorTime,
    Pass,
    TtftParts,
    Variant,
)
from planner.plan.predicted import AtPercentile, DeadlineResult, Percentiles, Predicted

GIB = 2.0**30


def latency(value: float | None, limit: float, percentile: float = 95.0) -> Percentiles:
    """Spread one figure over the percentiles."""

    def part(share: float) -> float | None:
        return None if value is None else value * share

    band = (0.1 * limit, None) if value is None else (value * 0.9, value * 1.1)
    at = AtPercentile(percentile=percentile, value=value, band=band)
    return Percentiles(mean=part(0.5), p50=part(0.45), p90=part(0.85), p95=value, p99=part(1.3), at=at, limit=limit)


def pool(name: str, role: str, degrees: tuple[int, int, int, int], replicas: tuple[int, int], **other: object) -> Pool:
    """Make a pool of ``replicas`` (all, spares)."""
    tp, pp, ep, dp = degrees
    each = tp * pp * dp
    fields: dict[str, object] = {
        "id": name,
        "shared_with": (),
        "role": role,
        "hardware": "h100-sxm",
        "engine": "vllm 0.11.0",
        "weights_dtype": "fp8",
        "kv_dtype": "bf16",
        "layout": Layout(tp=tp, pp=pp, ep=ep, dp=dp, ffn="1d"),
        "replicas": replicas[0],
        "spare_replicas": replicas[1],
        "accelerators_per_replica": each,
        "accelerators": replicas[0] * each,
        "nodes": replicas[0] * each / 8,
        "max_batch": 96,
        "token_budget": 2048,
        "utilisation": 0.71,
        "load": 0.64,
        "answerable_below_rps": 21.3,
        "memory": Memory(
            weights=17.5 * GIB, kv=41.2 * GIB, activations=3.1 * GIB, reserve=7.9 * GIB, capacity=79.6 * GIB
        ),
    }
    return Pool.model_validate(fields | other)


def plan(
    name: str, model: str, reasons: tuple[str, ...], pools: tuple[Pool, ...], predicted: Predicted
) -> WorkloadPlan:
    """Make a plan of one workload."""
    split = len(pools) > 1
    return WorkloadPlan(
        name=name,
        model=model,
        decision="split" if split else "together",
        reasons=reasons,
        revisit_when=(Signal(signal="rate", threshold=31.0, unit="req/s", why="a seventh replica is needed"),),
        pools=pools,
        predicted=predicted,
        kv=Kv(
            decision="move" if split else "none",
            break_even_bandwidth=3.1e9 if split else None,
            link_bandwidth=5e10 if split else None,
            bytes_per_token=163840.0,
        ),
        failure=Failure(
            one_node_lost=NodeLost(
                goodput_share=None if predicted.goodput_share is None else predicted.goodput_share - 0.02,
                capacity_share=0.83,
                requests_lost=37.0,
            ),
            availability=0.99953,
        ),
        operations=Operations(router=None, admission=None, migration=None, startup=None, scaling=None),
        cost=Cost(
            per_hour=60.0,
            per_million_output_tokens=0.84,
            per_request=0.0003,
            per_successful_task=0.0004 if predicted.goodput_share else None,
        ),
    )


def interactive(ttft: tuple[float | None, float], tpot: tuple[float | None, float], share: float) -> Predicted:
    """Make what an interactive promise is held against."""
    return Predicted(
        ttft=latency(*ttft),
        tpot=latency(*tpot),
        deadline=None,
        goodput_share=share,
        goodput_share_band=(share - 0.012, min(share + 0.008, 1.0)),
        goodput_share_required=0.95,
        promise_probability=0.81,
        offered_rps=24.0,
        goodput_rps=24.0 * share,
        output_tokens_per_s=6100.0,
        prefix_hit_rate=0.35,
    )


OFFLINE = Predicted(
    ttft=None,
    tpot=None,
    deadline=DeadlineResult(limit=8 * 3600.0, finish=5.2 * 3600.0, band=(4.7 * 3600.0, 6.1 * 3600.0), met=True),
    goodput_share=None,
    goodput_share_band=None,
    goodput_share_required=None,
    promise_probability=0.9,
    offered_rps=34.7,
    goodput_rps=34.7,
    output_tokens_per_s=8900.0,
    prefix_hit_rate=0.0,
)


@pytest.fixture(scope="session")
def answer() -> Recommendation:
    """Four workloads: one pool, two pools, a shared pool and a deadline; one warning."""
    chat, rag, code, night = (
        plan(
            "chat",
            "llama-3.3-70b",
            ("one pool needs 6 replicas, two pools 7: prompts are short and the step has room for them",),
            (pool("chat", "mixed", (4, 1, 1, 1), (6, 1)),),
            interactive((0.3124, 0.5), (0.0381, 0.05), 0.9824),
        ),
        plan(
            "rag",
            "qwen3-235b-a22b",
            ("prefill of 9,000 tokens would stretch decode steps to 71 ms against 50 ms promised; apart, both hold",),
            (
                pool("rag-prefill", "prefill", (4, 1, 1, 1), (4, 1), load=0.58),
                pool("rag-decode", "decode", (4, 1, 8, 2), (3, 1), load=0.71),
            ),
            interactive((1.42, 2.0), (0.0447, 0.05), 0.9611),
        ),
        plan(
            "code",
            "llama-3.3-70b",
            ("shares the pool of night: its hours are the other way round",),
            (pool("code", "mixed", (2, 1, 1, 1), (9, 0), shared_with=("night",), load=0.81),),
            interactive((0.188, 0.3), (0.0212, 0.025), 0.9712),
        ),
        plan(
            "night",
            "llama-3.3-70b",
            ("fills the hours that code leaves: no node of its own",),
            (pool("code", "mixed", (2, 1, 1, 1), (9, 0), shared_with=("code",), load=0.81),),
            OFFLINE,
        ),
    )
    return Recommendation(
        schema_version="1",
        planner_version="0.1.0",
        scenario="orbit",
        feasible=True,
        within_budgets=True,
        cluster=ClusterUse(
            nodes=16,
            nodes_used=12,
            accelerators=128,
            accelerators_used=90,
            spare_nodes=1,
            cost_per_hour=225.0,
            power_watts=98_400.0,
        ),
        workloads=(chat, rag, code, night),
        candidates=Candidates(tried=16_412, rejected={"memory": 7012, "tpot": 3200, "heads": 1188, "links": 604}),
        runner_up=RunnerUp(objective=234.9, delta=9.9, changes=("chat on TP8 x3 instead of TP4 x6",), probability=0.12),
        sensitivities=(
            Sensitivity(input="rate of chat", elasticity=0.41, flips_at=1.23),
            Sensitivity(input="decode efficiency", elasticity=-0.77, flips_at=0.81),
            Sensitivity(input="price of h100-sxm", elasticity=1.0, flips_at=None),
        ),
        infeasible=(),
        assumptions=(
            Assumption(name="all-reduce across nodes", value=0.7, unit="", source="carried over from H200"),
            Assumption(name="kv_dtype of chat", value="bf16", unit="", source="default"),
        ),
        checks=(
            CheckItem(metric="nodes", severity="fail", max=14, value=12, margin=0.1429, met=True),
            CheckItem(
                metric="utilisation",
                workload="code",
                severity="warn",
                max=0.7,
                value=0.71,
                margin=-0.0143,
                met=False,
                location="orbit.yaml:88",
            ),
        ),
        solver=Solver(status="optimal", gap=0.0),
    )


@pytest.fixture(scope="session")
def hopeless(answer: Recommendation) -> Recommendation:
    """No plan: one workload cannot hold its promise, and another needs more nodes than there are."""
    fields = {
        "feasible": False,
        "workloads": answer.workloads[2:3],
        "runner_up": None,
        "sensitivities": (),
        "checks": (),
        "infeasible": (
            Infeasible(
                workload="chat",
                binding="tpot",
                value=0.0261,
                limit=0.02,
                nearest=(
                    Change(field="workloads.chat.promise.tpot", from_=0.02, to=0.0274, unit="s"),
                    Change(field="workloads.chat.weights_dtype", from_="bf16", to="fp8", unit=""),
                ),
            ),
            Infeasible(
                workload="rag",
                binding="nodes",
                value=19,
                limit=16,
                nearest=(Change(field="cluster.inventory.0.nodes", from_=16, to=19, unit=""),),
            ),
        ),
    }
    return answer.model_copy(update=fields)


def one_pass(sequences: float, tokens: float, context: float) -> Pass:
    """Make a pass of three operators."""
    operators = (
        OperatorTime(operator="attention", compute=0.0, memory=0.0071, network=0.0, overhead=0.0006, count=80),
        OperatorTime(operator="gate_up_proj", compute=0.0, memory=0.0102, network=0.0, overhead=0.0004, count=80),
        OperatorTime(operator="all_reduce", compute=0.0, memory=0.0, network=0.0041, overhead=0.0, count=160),
    )
    seconds = sum(item.total for item in operators)
    return Pass(sequences=sequences, tokens=tokens, context=context, seconds=seconds, operators=operators)


def variant(change: str, tp: int, rejected: tuple[str, ...] = ()) -> Variant:
    """Make a plan of one mixed pool."""
    out = bool(rejected)
    memory = AcceleratorMemory(
        weights=70 / tp * GIB,
        kv=41.2 * GIB,
        activations=3.1 * GIB,
        reserve=7.9 * GIB,
        adapters=0.0,
        capacity=79.6 * GIB,
    )
    explained = ExplainedPool(
        role="mixed",
        hardware="h100-sxm",
        engine="vllm 0.11.0",
        weights_dtype="fp8",
        kv_dtype="bf16",
        layout=Layout(tp=tp, pp=1, ep=1, dp=1, ffn="1d"),
        replicas=None if out else 24 // tp,
        accelerators_per_replica=tp,
        decode=None if out else one_pass(71.3, 71.3, 1800.0),
        prefill=None if out else one_pass(1.0, 1155.0, 0.0),
        memory=None if out else memory,
    )
    return Variant(
        change=change,
        decision="together",
        pools=(explained,),
        ttft=None if out else TtftParts(wait=0.041, step_residual=0.012, prefill=0.094, transfer=0.0),
        tpot=None if out else 0.0224,
        goodput_share=None if out else 0.9824,
        accelerators=None if out else 24,
        cost_per_hour=None if out else 60.0,
        rejected=rejected,
    )


@pytest.fixture(scope="session")
def explanation() -> Explanation:
    """One pool; a neighbour that is a plan, and one that is out."""
    return Explanation(
        schema_version="1",
        planner_version="0.1.0",
        scenario="orbit",
        workload="chat",
        model="llama-3.3-70b",
        chosen=variant("chosen", 4),
        neighbours=(variant("TP halved", 2, ("memory",)), variant("TP doubled", 8)),
        assumptions=(
            Basis(name="gemm fp8", value=0.78, unit="", basis="measured", source="operator tables"),
            Basis(name="all_reduce", value=0.7, unit="", basis="assumed", source="carried over from H200"),
        ),
    )
