"""What the rooms say to each other: frozen records, without behaviour that needs a device, a clock or a file."""

from ._configuration import Configuration, Value, freeze, thaw
from ._errors import Rejection, UserError
from ._measurement import Cost, Estimate, Measurement, Outcome
from ._problem import Operand, Problem, ProblemType
from ._program import (
    Argument,
    Binary,
    CompiledFacts,
    Launch,
    LocalArgument,
    Module,
    OperandArgument,
    Plan,
    ScalarArgument,
    TensorMapArgument,
    WorkspaceArgument,
    Zero,
)
from ._registry import Registry
from ._solution import Solution, abbreviation, identity, solution_names, value_text
from ._target import Target

__all__ = [
    "Argument",
    "Binary",
    "CompiledFacts",
    "Configuration",
    "Cost",
    "Estimate",
    "Launch",
    "LocalArgument",
    "Measurement",
    "Module",
    "Operand",
    "OperandArgument",
    "Outcome",
    "Plan",
    "Problem",
    "ProblemType",
    "Registry",
    "Rejection",
    "ScalarArgument",
    "Solution",
    "Target",
    "TensorMapArgument",
    "UserError",
    "Value",
    "WorkspaceArgument",
    "Zero",
    "abbreviation",
    "freeze",
    "identity",
    "solution_names",
    "thaw",
    "value_text",
]
