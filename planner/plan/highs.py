"""The HiGHS solver through its own Python interface, which starts fifty times as fast as scipy's (decision 8)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from planner.numeric import Floats, Ints


class Line(Protocol):
    """One row of a programme: low <= sum of weights times columns <= high."""

    @property
    def columns(self) -> Sequence[int]:
        """Columns with a weight."""

    @property
    def weights(self) -> Sequence[float]:
        """Weight of each."""

    @property
    def low(self) -> float:
        """Least value."""

    @property
    def high(self) -> float:
        """Largest value."""


class Found(NamedTuple):
    """What the solver found."""

    values: Ints | None
    """Value of each column; None where there is no plan, or the branches ran out before one was found."""
    bound: float
    """What no plan can undercut; minus infinity where nothing is proved."""
    proved: bool
    """Whether the answer is proved: a plan within the gap, or that there is none."""


def minimise(cost: Floats, high: Floats, rows: Sequence[Line], gap: float, branches: int) -> Found:
    """Find whole numbers from 0 to ``high`` (columns,) that keep all rows at least ``cost`` (columns,).

    Within a relative ``gap``, or after so many ``branches``: never by time, so that answers repeat.
    """
    import highspy  # noqa: PLC0415 - only a plan needs it

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(rows)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(len(cost)), np.asarray(high, float)
    model.row_lower_ = np.array([row.low for row in rows], float)
    model.row_upper_ = np.array([row.high for row in rows], float)
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(cost)
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.num_col_, matrix.num_row_ = len(cost), len(rows)
    matrix.start_ = np.cumsum([0] + [len(row.columns) for row in rows])
    matrix.index_ = np.concatenate([np.asarray(row.columns, np.int32) for row in rows])
    matrix.value_ = np.concatenate([np.asarray(row.weights, float) for row in rows])
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    # Where a gap is allowed the first relaxation is mostly near enough, and reducing the programme takes longer.
    reduce = "off" if gap else "choose"
    settings: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "mip_rel_gap": gap,
        "mip_max_nodes": branches,
        "threads": 1,
        "presolve": reduce,
    }
    for name, value in settings.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    info, status = solver.getInfo(), solver.getModelStatus()
    solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64) if solved else None
    proved = status in {highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible}
    return Found(values, float(info.mip_dual_bound) if solved else -np.inf, proved)
