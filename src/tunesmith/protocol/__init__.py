"""In what order? Phases, steps, lineages, winners: pure, it is handed whoever measures and whoever judges."""

from ._drive import Searched, carry_out
from ._forecast import StepForecast, StepsForecast, forecast
from ._intervals import DRIFT
from ._lineage import Lineage
from ._measure import Cell, Measure, TimeTable
from ._results import NOTHING_RAN, Dropped, ProtocolResult, StepResult, StepTrial, step_names
from ._run import run
from ._settings import GlobalParameters, LibraryLogic
from ._steps import Benchmark, Final, Fork, Join, Objective, Phase, Phases, SearchPlan, Step
from ._winners import Contest, ContestDecision, choose
from .schema import TuningFile, read_tuning_file

__all__ = [
    "DRIFT",
    "NOTHING_RAN",
    "Benchmark",
    "Cell",
    "Contest",
    "ContestDecision",
    "Dropped",
    "Final",
    "Fork",
    "GlobalParameters",
    "Join",
    "LibraryLogic",
    "Lineage",
    "Measure",
    "Objective",
    "Phase",
    "Phases",
    "ProtocolResult",
    "SearchPlan",
    "Searched",
    "Step",
    "StepForecast",
    "StepResult",
    "StepTrial",
    "StepsForecast",
    "TimeTable",
    "TuningFile",
    "carry_out",
    "choose",
    "forecast",
    "read_tuning_file",
    "run",
    "step_names",
]
