"""A tuning file: its plan, forecast and summary, and the comparison of what it tuned with a peer."""

from .forecast import GroupPlan, Plan, plan
from .peer import Comparison, compare_with_numpy
from .summary import Summary, summarise
from .tuning import Group, Outcome, tune

__all__ = [
    "Comparison",
    "Group",
    "GroupPlan",
    "Outcome",
    "Plan",
    "Summary",
    "compare_with_numpy",
    "plan",
    "summarise",
    "tune",
]
