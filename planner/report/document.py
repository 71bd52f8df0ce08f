"""From an answer to a document, whatever its form."""

from planner.check.accuracy import Accuracy
from planner.check.calibration import CalibrationFound
from planner.check.simulated import Simulation
from planner.check.single import Prediction
from planner.plan.answer import Recommendation
from planner.plan.explanation import Explanation
from planner.report.blocks import Document
from planner.report.detail import detail
from planner.report.explained import explained
from planner.report.fitted import fitted
from planner.report.measured import measured
from planner.report.overview import overview
from planner.report.replayed import replayed
from planner.report.single import predicted


def compose(
    answer: Recommendation | Explanation | Accuracy | Prediction | CalibrationFound | Simulation,
    *,
    explain: bool = False,
) -> Document:
    """Compose the report of an answer.

    A recommendation takes one screen, or with ``explain`` all that the answer holds. An explanation takes the chosen
    plan, or with ``explain`` the operators of its neighbours too.
    """
    if isinstance(answer, Accuracy):
        return Document(measured(answer))
    if isinstance(answer, Prediction):
        return Document(predicted(answer))
    if isinstance(answer, Simulation):
        return Document(replayed(answer))
    if isinstance(answer, CalibrationFound):
        return Document(fitted(answer))
    if isinstance(answer, Explanation):
        return Document(explained(answer, explain=explain))
    return Document((*overview(answer, explain=explain), *(detail(answer) if explain else ())))
