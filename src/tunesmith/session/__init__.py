"""A command's work from what was asked to what is written: the frame of every run, and a folder for each plan."""

from .frame import events
from .frame.record import RunOutcome
from .frame.reuse import Reuse
from .tuning_file import (
    Comparison,
    Forecast,
    Group,
    GroupForecast,
    Summary,
    TuningPlan,
    compare_with_numpy,
    plan,
    summarise,
    tune,
)

__all__ = [
    "Comparison",
    "Forecast",
    "Group",
    "GroupForecast",
    "Reuse",
    "RunOutcome",
    "Summary",
    "TuningPlan",
    "compare_with_numpy",
    "events",
    "plan",
    "summarise",
    "tune",
]
