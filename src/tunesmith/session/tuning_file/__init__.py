"""A tuning file: its plan, forecast and summary, and the comparison of what it tuned with a peer."""

from .forecast import Forecast, GroupForecast, plan
from .peer import Compared, Comparison, against_numpy, compare_with_numpy
from .summary import Summary, summarise
from .tuning import Group, TuningPlan, tune

__all__ = [
    "Compared",
    "Comparison",
    "Forecast",
    "Group",
    "GroupForecast",
    "Summary",
    "TuningPlan",
    "against_numpy",
    "compare_with_numpy",
    "plan",
    "summarise",
    "tune",
]
