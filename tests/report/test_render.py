"""What a reader of a report must find, in each form and at each width."""

import json
import re
import subprocess
import sys

import pytest

from planner.plan.answer import Recommendation, RunnerUp
from planner.plan.explanation import Explanation
from planner.report.blocks import Column, Document, Facts, Heading, Table, cell
from planner.report.document import compose
from planner.report.render import Form, render, write

SCREEN = 40


def squeezed(text: str) -> str:
    """Join what a narrow line has broken."""
    return " ".join(text.split())


def test_a_plan_fits_one_screen(answer: Recommendation) -> None:
    lines = render(answer, "terminal").splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("explain", [False, True])
def test_no_line_is_wider_than_the_terminal(answer: Recommendation, width: int, *, explain: bool) -> None:
    assert max(map(len, render(answer, "terminal", explain=explain, width=width).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_screen_loses_nothing(answer: Recommendation, width: int) -> None:
    text = render(answer, "terminal", width=width)
    for block in compose(answer).blocks:
        if isinstance(block, Table):
            for line in (line for row in block.rows for item in row for line in item):
                assert line.text in text
        elif isinstance(block, Facts):
            for label, lines in block.rows:
                assert label in text
                assert all(word in text for line in lines for word in line.text.split())


@pytest.mark.parametrize("width", [80, 120])
def test_the_plan_reads_at_a_glance(answer: Recommendation, width: int) -> None:
    text = squeezed(render(answer, "terminal", width=width))
    for said in (
        "orbit: every promise holds, with 1 warning of a budget",
        "12 of 16 nodes used (spares fill 1), 4 left",
        "Second lines are 80 % bands.",
        "TP4 x6, 1 spare",
        "prefill TP4 x4, 1 spare",
        "decode TP4 DP2 EP8 x3, 1 spare",
        "312 of 500 ms",
        "44.7 of 50 ms",
        "5.2 of 8 h",
        "98.2 of 95",
        "97.0 to 99.0",
        "shared with night",
        "4.4 % worse, cheaper after all with 12 %: chat on TP8 x3 instead of TP4 x6",
        "decode efficiency x0.81, rate of chat x1.23",
        "warning: utilisation of code is 71 %, at most 70 %",
        "16,412 candidates; out: 7,012 out of memory",
        "2 inputs, listed by --explain",
    ):
        assert said in text


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_without_a_plan_the_report_says_what_binds_and_what_would_free_it(hopeless: Recommendation, form: Form) -> None:
    text = squeezed(render(hopeless, form)).replace("\\", "")
    assert "no plan: 2 workloads cannot be promised" in text
    assert "26.1 ms at best, 20 ms allowed" in text
    assert "workloads.chat.promise.tpot from 20 ms to 27.4 ms" in text
    assert "workloads.chat.weights_dtype from bf16 to fp8" in text
    assert "cluster.inventory.0.nodes from 16 to 19" in text
    assert "Runner-up" not in text


def test_a_missed_budget_is_the_headline(answer: Recommendation) -> None:
    missed = answer.checks[0].model_copy(update={"max": 10.0, "met": False, "margin": -0.2})
    late = answer.model_copy(update={"within_budgets": False, "checks": (missed, answer.checks[1])})
    text = render(late, "terminal")
    assert text.startswith("orbit: every promise holds, but 1 budget missed\n")
    assert "missed: nodes is 12, at most 10" in text


def test_a_latency_without_a_value_is_marked(answer: Recommendation) -> None:
    plan = answer.workloads[0]
    ttft = plan.predicted.ttft
    assert ttft is not None
    at = ttft.at.model_copy(update={"value": None, "band": (0.2, None)})
    predicted = plan.predicted.model_copy(update={"ttft": ttft.model_copy(update={"at": at})})
    text = render(
        answer.model_copy(update={"workloads": (plan.model_copy(update={"predicted": predicted}),)}), "terminal"
    )
    assert "n/a of 500 ms" in text
    assert "200 and up" in text


def test_percentiles_that_differ_are_named_in_each_row(answer: Recommendation) -> None:
    plan = answer.workloads[0]
    ttft = plan.predicted.ttft
    assert ttft is not None
    at = ttft.at.model_copy(update={"percentile": 99.0})
    predicted = plan.predicted.model_copy(update={"ttft": ttft.model_copy(update={"at": at})})
    text = render(
        answer.model_copy(update={"workloads": (plan.model_copy(update={"predicted": predicted}),)}), "terminal"
    )
    assert "p99 281 to 344" in text
    assert "p95 34.3 to 41.9" in text


def test_details_hold_every_pool_assumption_and_reason(answer: Recommendation) -> None:
    text = render(answer, "terminal", explain=True)
    for plan in answer.workloads:
        assert f"\n{plan.name}: " in text
        for pool in plan.pools:
            assert re.search(rf"^{re.escape(pool.id)} .*{pool.role}", text, re.MULTILINE)
    for item in answer.assumptions:
        assert item.name in text
        assert item.source in text
    for name, count in answer.candidates.rejected.items():
        assert re.search(rf"^{name} .* {count:,}$", text, re.MULTILINE)
    for sensitivity in answer.sensitivities:
        assert sensitivity.input in text


def test_an_explanation_shows_where_each_millisecond_goes(explanation: Explanation) -> None:
    text = render(explanation, "terminal")
    assert "147 ms = 41 ms wait + 12 ms rest of a step + 94 ms prefill + 0 s KV transfer" in text
    assert re.search(r"^TP halved +together, TP2 +out of memory$", text, re.MULTILINE)
    assert re.search(r"^all_reduce +160 +4.1 ms +4.1 ms +18.3 %$", text, re.MULTILINE)
    assert "TP doubled, TP8 x3: one decode step" not in text
    assert "TP doubled, TP8 x3: one decode step" in render(explanation, "terminal", explain=True)


def test_a_tie_is_no_loss(answer: Recommendation) -> None:
    runner_up = RunnerUp(objective=225.0, delta=0.0, changes=("chat on TP8 x3",), probability=0.5)
    assert "as good: chat on TP8 x3" in render(answer.model_copy(update={"runner_up": runner_up}), "terminal")


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_an_answer_without_any_list_is_still_an_answer(answer: Recommendation, form: Form) -> None:
    lists = ("workloads", "sensitivities", "infeasible", "assumptions", "checks")
    bare = answer.model_copy(update=dict.fromkeys(lists, ()) | {"feasible": False, "runner_up": None})
    text = render(bare, form, explain=True)
    assert "orbit" in text
    if form != "json":
        assert "no plan: the cluster cannot hold all promises" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_long_names_are_broken_and_never_cut(answer: Recommendation, width: int) -> None:
    name, model = "long-context-analysis-of-contracts", "qwen3-235b-a22b-instruct-2507"
    plan = answer.workloads[0].model_copy(update={"name": name, "model": model})
    text = render(answer.model_copy(update={"workloads": (plan,)}), "terminal", explain=True, width=width)
    assert name in text
    assert model in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, text.splitlines())) <= width


def test_colour_only_where_it_is_asked_for(answer: Recommendation) -> None:
    plain, coloured = render(answer, "terminal"), render(answer, "terminal", colour=True)
    assert "\x1b" not in plain
    assert "\x1b[32m" in coloured
    without = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in without.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_the_same_answer_gives_the_same_bytes(
    answer: Recommendation, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = render(answer, form)
    for name, value in {"COLUMNS": "47", "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert render(answer, form) == first
    assert first.endswith("\n")


def test_json_holds_the_answer_with_all_details(answer: Recommendation) -> None:
    document = json.loads(render(answer, "json"))
    assert document["workloads"][3]["predicted"]["ttft"] is None
    assert document["workloads"][3]["predicted"]["deadline"]["finish"] == 18720.0
    assert render(answer, "json", explain=True) == render(answer, "json")


def test_markdown_tables_have_as_many_cells_in_each_row(answer: Recommendation) -> None:
    text = render(answer, "markdown", explain=True)
    tables = [part for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) > 10
    for part in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in part.splitlines()}) == 1


def test_markdown_takes_names_literally() -> None:
    rows = Table((Column("a|b"), Column("n", figures=True)), ((cell("x_y|z*"), cell("1", under="2")),))
    text = write(Document((Heading(cell("[t]")[0], 1), rows)), "markdown")
    assert text.splitlines()[0] == r"# \[t\]"
    assert r"x\_y\|z\*" in text
    assert "1<br>2" in text


@pytest.mark.parametrize(
    ("form", "absent"), [("json", "rich tabulate"), ("markdown", "rich"), ("terminal", "tabulate")]
)
def test_a_form_loads_only_what_it_needs(form: str, absent: str, answer: Recommendation) -> None:
    program = (
        "import sys\n"
        "from planner.plan.answer import Recommendation\n"
        "from planner.report.render import render\n"
        "answer = Recommendation.model_validate_json(sys.stdin.buffer.read())\n"
        f"sys.stdout.buffer.write(render(answer, {form!r}).encode())\n"
        f"assert not [name for name in {absent.split()!r} if name in sys.modules]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=render(answer, "json").encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout


def test_requests_of_a_shared_pool_are_lost_once(answer: Recommendation) -> None:
    lost = answer.workloads[0].failure.one_node_lost.model_copy(update={"requests_lost": 20.0})
    plan = answer.workloads[0]
    plan = plan.model_copy(update={"failure": plan.failure.model_copy(update={"one_node_lost": lost})})
    other = plan.model_copy(update={"name": "other"})
    text = render(answer.model_copy(update={"workloads": (plan, other)}), "terminal")
    assert "at most 20 requests in flight" in squeezed(text)
