"""The frozen records that the rooms exchange. Their behaviour needs no device, no clock and no file."""

from ._configuration import Configuration, Value, freeze, thaw
from ._errors import Rejection, SeveralError, UserError, unraised_copy
from ._library_plan import LibraryPlan
from ._measurement import Cost, Estimate, Measurement, Outcome, error_detail
from ._pickled import pickled_by_fields
from ._printable import LINE_CHARACTERS, comment_text, printable
from ._problem import Operand, Problem, ProblemType
from ._program import (
    ZEROED_HEAD,
    Argument,
    Binary,
    CompiledFacts,
    Launch,
    LibraryCall,
    LocalArgument,
    Module,
    OperandArgument,
    Plan,
    ScalarArgument,
    Step,
    TensorMapArgument,
    WorkspaceArgument,
    Write,
    Zero,
)
from ._random import UNKNOWN_ARCHITECTURE, LaunchShape, RandomRow, architecture_name
from ._registry import Registry
from ._solution import Solution, identity, solution_names, value_text
from ._student import student_quantile
from ._target import Target, whole_device

__all__ = [
    "LINE_CHARACTERS",
    "UNKNOWN_ARCHITECTURE",
    "ZEROED_HEAD",
    "Argument",
    "Binary",
    "CompiledFacts",
    "Configuration",
    "Cost",
    "Estimate",
    "Launch",
    "LaunchShape",
    "LibraryCall",
    "LibraryPlan",
    "LocalArgument",
    "Measurement",
    "Module",
    "Operand",
    "OperandArgument",
    "Outcome",
    "Plan",
    "Problem",
    "ProblemType",
    "RandomRow",
    "Registry",
    "Rejection",
    "ScalarArgument",
    "SeveralError",
    "Solution",
    "Step",
    "Target",
    "TensorMapArgument",
    "UserError",
    "Value",
    "WorkspaceArgument",
    "Write",
    "Zero",
    "architecture_name",
    "comment_text",
    "error_detail",
    "freeze",
    "identity",
    "pickled_by_fields",
    "printable",
    "solution_names",
    "student_quantile",
    "thaw",
    "unraised_copy",
    "value_text",
    "whole_device",
]
