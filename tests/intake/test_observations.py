"""Tables of measurements: what is read, and what is said of a table at fault."""

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.intake.observations import read

HEAD = "engine,model,hardware,input_tokens,output_tokens,kind,metric,value,unit,tp,concurrency"
ROW = "vllm,llama-3.1-8b,h100-sxm,1000,100,fixed_concurrency,tpot_mean,0.01,s,1,8"


def table(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def faults(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value).splitlines()


def test_a_blank_cell_is_absent(tmp_path: Path) -> None:
    (row,) = read(table(tmp_path, HEAD, ROW.replace(",1,8", ",,")))
    assert row.tp is None
    assert row.concurrency is None
    assert row.value == 0.01


def test_every_fault_has_its_line_and_column(tmp_path: Path) -> None:
    said = faults(table(tmp_path, HEAD, ROW, ROW.replace("0.01", "-1"), ROW.replace("tpot_mean", "tptt")))
    assert len(said) == 2
    assert "table.csv:3: value: '-1' " in said[0]
    assert "greater than 0" in said[0]
    assert "table.csv:4: metric: 'tptt' " in said[1]
    assert "tpot_mean" in said[1]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "missing"),
        ((HEAD,), "holds no rows"),
        ((HEAD.replace("value", "vaule"), ROW), "'vaule'"),
        ((HEAD + ",tp", ROW + ",1"), "twice"),
        ((HEAD, ROW + ",7"), "more cells"),
        ((HEAD, '"' + ROW), "is not CSV"),
        ((HEAD, ROW.replace("0.01", "nan")), "value"),
        ((HEAD, ROW.replace("0.01", "inf")), "value"),
    ],
)
def test_a_table_at_fault_is_refused_in_words(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    assert words in "\n".join(faults(table(tmp_path, *lines)))


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    (said,) = faults(tmp_path / "none.csv")
    assert "none.csv" in said
