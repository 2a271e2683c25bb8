"""The OpenCL C of a family, rendered from its template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from tunesmith.records import Module, ProblemType

if TYPE_CHECKING:
    from jinja2 import Environment

REAL = {"s": "float", "d": "double"}
"""OpenCL C's name of a data type by its letter."""

OPTIONS = ("-cl-std=CL1.2", "-cl-mad-enable")


def opencl_module(
    template: str, values: Mapping[str, object], problem_type: ProblemType, entries: tuple[str, ...]
) -> Module:
    """The module that a template becomes with the family's `values` and what the problem's type says."""
    fields = problem_type.fields
    of_type = {
        "real": REAL[fields.word("DataType")],
        "use_beta": fields.flag("UseBeta"),
        "transpose_a": fields.flag("TransposeA"),
        "transpose_b": fields.flag("TransposeB"),
    }
    text = _environment().get_template(template).render({**values, **of_type})
    return Module("OpenCL", text, entries, OPTIONS)


def lane(vector: int, number: int) -> str:
    """OpenCL C's suffix for an element of a vector: `.s0` to `.sf`; empty for a vector of one, which is a scalar."""
    return "" if vector == 1 else f".s{number:x}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # a program that only launches needs none of it

    environment = Environment(
        loader=PackageLoader("tunesmith.kernels.gemm.opencl", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # OpenCL C, not HTML
    )
    environment.globals["lane"] = lane
    return environment
