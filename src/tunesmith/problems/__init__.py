"""What is computed: operations, their problem types and sizes, and the reference that a result is checked against.

The tolerance of a result's check is `Expected.bound` (`base.py`). Each operation derives it from the arithmetic in its
own `reference.py`: `gemm/`, `convolution/` (a GEMM's bound) and `custom/` (the description's `Tolerance`). `random/`
has one for each distribution in `distributions.py`.
"""

from tunesmith.records import Registry

from .base import Array, Expected, Operation, storage_bytes, strided, whole_size
from .files import MOST_GENERATED_BYTES, beginning_of, bytes_of, text_of
from .keys import Key, checked, most_similar, shortened, unknown_key
from .mistakes import Mistakes
from .sizes import LIMIT, clamp_sizes, exact_sizes, range_sizes
from .yaml import MOST_NODES, Node, read_yaml, refuse_depth

OPERATIONS: Registry[Operation] = Registry(
    "operation",
    {
        "GEMM": "tunesmith.problems.gemm:GemmOperation",
        "Convolution": "tunesmith.problems.convolution:ConvolutionOperation",
        "Random": "tunesmith.problems.random:RandomOperation",
        "Custom": "tunesmith.problems.custom:CustomOperation",
    },
    group="tunesmith.operations",
)

DEFAULT_OPERATION = "GEMM"
"""The operation of a tuning file that names none, as Tensile's files do."""

__all__ = [
    "DEFAULT_OPERATION",
    "LIMIT",
    "MOST_GENERATED_BYTES",
    "MOST_NODES",
    "OPERATIONS",
    "Array",
    "Expected",
    "Key",
    "Mistakes",
    "Node",
    "Operation",
    "beginning_of",
    "bytes_of",
    "checked",
    "clamp_sizes",
    "exact_sizes",
    "most_similar",
    "range_sizes",
    "read_yaml",
    "refuse_depth",
    "shortened",
    "storage_bytes",
    "strided",
    "text_of",
    "unknown_key",
    "whole_size",
]
