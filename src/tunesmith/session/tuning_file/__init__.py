"""A tuning file: its plan, forecast and summary, and the comparison of what it tuned with a peer."""

from .forecast import Forecast, GroupForecast, plan
from .peer import Comparison, compare_with_numpy
from .summary import Summary, summarise
from .tuning import Group, TuningPlan, tune

__all__ = [
    "Comparison",
    "Forecast",
    "Group",
    "GroupForecast",
    "Summary",
    "TuningPlan",
    "compare_with_numpy",
    "plan",
    "summarise",
    "tune",
]
