"""In what order? Phases, steps, lineages, winners. Pure: the caller passes a `Measure`, which measures configurations,
and an `Oracle`, which answers questions about them."""

from .benchmark_protocol import run
from .drive import SearchRun, carry_out
from .intervals import DRIFT
from .lineage import Lineage
from .measure import Cell, Measure, TimeTable
from .results import NOTHING_RAN, Dropped, ProtocolResult, StepResult, StepTrial, step_names
from .schema import TuningFile, read_tuning_file
from .settings import GlobalParameters, LibraryLogic
from .step_forecast import StepForecast, StepsForecast, forecast
from .steps import Benchmark, Final, Fork, Join, Objective, Phase, Phases, SearchPlan, Step
from .winners import Contest, ContestDecision, choose

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
    "SearchRun",
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
