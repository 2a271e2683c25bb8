"""The commands on a tuning file: tuning it, forecasting and summarising the run, comparing its logic with a peer."""

from tunesmith.formats.tensile.tuning import RejectedProblem, TensileImport, Treatment, WrittenGroup

from .forecast import Forecast, GroupForecast, plan
from .importing import ImportedFile, import_file
from .peer import NumpyComparison, SizeComparison, against_numpy, compare_with_numpy
from .summary import Summary, summarise
from .tuning import Group, TuningPlan, tune

__all__ = [
    "Forecast",
    "Group",
    "GroupForecast",
    "ImportedFile",
    "NumpyComparison",
    "RejectedProblem",
    "SizeComparison",
    "Summary",
    "TensileImport",
    "Treatment",
    "TuningPlan",
    "WrittenGroup",
    "against_numpy",
    "compare_with_numpy",
    "import_file",
    "plan",
    "summarise",
    "tune",
]
