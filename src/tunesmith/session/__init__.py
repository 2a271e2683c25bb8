"""A tuning run from file to logic, its forecast, what it left, and the comparison with a peer."""

from ._peer import Comparison, compare_with_numpy
from ._plan import GroupPlan, Plan, plan
from ._run import Group, Outcome, tune
from ._summary import Summary, summarise
from .compare import Ratio, compare

__all__ = [
    "Comparison",
    "Group",
    "GroupPlan",
    "Outcome",
    "Plan",
    "Ratio",
    "Summary",
    "compare",
    "compare_with_numpy",
    "plan",
    "summarise",
    "tune",
]
