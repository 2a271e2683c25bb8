"""What is computed: operations, their problem types and sizes, and the numbers that they must give."""

from tunesmith.records import Registry

from ._base import Array, Expected, Operation, storage_bytes, strided, whole_size
from ._files import text_of
from ._keys import Key, checked, shown, unknown_key
from ._yaml import Node, read_yaml
from .sizes import LIMIT, clamp, exact_sizes, range_sizes

OPERATIONS: Registry[Operation] = Registry(
    "operation",
    {
        "GEMM": "tunesmith.problems.gemm:GemmOperation",
        "Random": "tunesmith.problems.random:RandomOperation",
        "Custom": "tunesmith.problems.custom:CustomOperation",
    },
    group="tunesmith.operations",
)

DEFAULT_OPERATION = "GEMM"
"""What a tuning file means that names none, as Tensile's do."""

__all__ = [
    "DEFAULT_OPERATION",
    "LIMIT",
    "OPERATIONS",
    "Array",
    "Expected",
    "Key",
    "Node",
    "Operation",
    "checked",
    "clamp",
    "exact_sizes",
    "range_sizes",
    "read_yaml",
    "shown",
    "storage_bytes",
    "strided",
    "text_of",
    "unknown_key",
    "whole_size",
]
