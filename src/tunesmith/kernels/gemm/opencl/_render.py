"""From a template and what fills it to a module."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from tunesmith.records import Module, ProblemType

REAL = {"s": "float", "d": "double"}
"""What OpenCL C calls a data type of a problem type."""

OPTIONS = ("-cl-std=CL1.2", "-cl-mad-enable")


def render(template: str, entries: tuple[str, ...], problem_type: ProblemType, values: Mapping[str, object]) -> Module:
    """One OpenCL module; the template sees `values` and what follows from the problem type."""
    fields = problem_type.fields
    of_type = {
        "real": REAL[fields.word("DataType")],
        "use_beta": fields.flag("UseBeta"),
        "transpose_a": fields.flag("TransposeA"),
        "transpose_b": fields.flag("TransposeB"),
    }
    text = _environment().get_template(template).render(**values, **of_type)
    return Module("OpenCL", text, entries, OPTIONS)


def lane(vector: int, number: int) -> str:
    """How OpenCL C names an element of a vector: `.s0` to `.sf`; a vector of one is a scalar."""
    return "" if vector == 1 else f".s{number:x}"


@cache
def _environment() -> Environment:
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
