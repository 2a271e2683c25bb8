"""In what order? Phases, steps, lineages, winners: pure, it is handed whoever measures and whoever judges."""

from ._drive import Searched, carry_out
from ._forecast import Forecast, StepForecast, forecast
from ._intervals import DRIFT
from ._lineage import Lineage
from ._measure import Cell, Measure, Table
from ._results import NOTHING_RAN, Dropped, Result, StepResult, Trial, step_names
from ._run import run
from ._settings import GlobalParameters, LibraryLogic
from ._steps import Benchmark, Final, Fork, Join, Objective, Phase, Phases, SearchPlan, Step
from ._winners import Contest, Decision, choose
from .schema import TuningFile, read_tuning_file

__all__ = [
    "DRIFT",
    "NOTHING_RAN",
    "Benchmark",
    "Cell",
    "Contest",
    "Decision",
    "Dropped",
    "Final",
    "Forecast",
    "Fork",
    "GlobalParameters",
    "Join",
    "LibraryLogic",
    "Lineage",
    "Measure",
    "Objective",
    "Phase",
    "Phases",
    "Result",
    "SearchPlan",
    "Searched",
    "Step",
    "StepForecast",
    "StepResult",
    "Table",
    "Trial",
    "TuningFile",
    "carry_out",
    "choose",
    "forecast",
    "read_tuning_file",
    "run",
    "step_names",
]
