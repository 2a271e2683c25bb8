"""Every kernel family by name, and which of them a configuration means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tunesmith.records import Configuration, ProblemType, Registry, Target, Value
from tunesmith.spaces import Parameter, Space

from ._base import Kernel

KERNELS: Registry[Kernel] = Registry(
    "kernel",
    {
        "TiledGemm": "tunesmith.kernels.gemm.opencl.tiled:TiledGemm",
        "RegisterGemm": "tunesmith.kernels.gemm.opencl.register:RegisterGemm",
        "CudaSimtGemm": "tunesmith.kernels.gemm.cuda.simt:CudaSimtGemm",
        "TritonTmaGemm": "tunesmith.kernels.gemm.triton.tma:TritonTmaGemm",
        "Custom": "tunesmith.kernels.custom:CustomKernel",
        "FakeGemm": "tunesmith.kernels.fake:FakeGemm",
    },
)
"""The order counts: where a configuration leaves open which family is meant, the first that fits is taken."""

HIDDEN = ("FakeGemm",)
"""Not offered to people: for devices that a search does not show either."""


def families(operation: str, hidden: bool = True) -> list[Kernel]:
    """The families that compute an operation, in the registry's order; those for people only without `hidden`."""
    names = [name for name in KERNELS if hidden or name not in HIDDEN]
    return [kernel for kernel in map(KERNELS.__getitem__, names) if kernel.operation == operation]


def family_for(operation: str, config: Configuration) -> Kernel:
    """The family that a configuration means: that of its `KernelLanguage`, whose form it does not contradict.

    Raises LookupError when there is none, naming the forms that exist.
    """
    candidates = families(operation)
    for kernel in candidates:
        chosen_by = {"KernelLanguage": kernel.language, **kernel.form}
        if all(config.get(name, value) == value for name, value in chosen_by.items()):
            return kernel
    asked = {name: config[name] for name in ("KernelLanguage", *_form_names(candidates)) if name in config}
    shown = families(operation, hidden=False)
    known = ", ".join(f"{kernel.name} ({kernel.language} {dict(kernel.form)})" for kernel in shown)
    raise LookupError(f"no {operation} kernel for {asked}; there are {known}")


def tuning_space(problem_type: ProblemType, target: Target | None = None, hidden: bool = False) -> Space:
    """Every parameter that a tuning file may name for this type: the union over the operation's families.

    A parameter that several families have keeps the first one's default and meaning and lists the values of all.
    With `hidden`, the families that only tests use are among them.
    """
    united: dict[str, Parameter] = {}
    for kernel in families(problem_type.operation, hidden):
        for parameter in kernel.space(problem_type, target):
            first = united.get(parameter.name, parameter)
            united[parameter.name] = replace(first, values=_merged(first.values, parameter.values))
    return Space(tuple(united.values()))


def _form_names(kernels: Iterable[Kernel]) -> list[str]:
    return sorted({name for kernel in kernels for name in kernel.form})


def _merged(first: tuple[Value, ...], second: tuple[Value, ...]) -> tuple[Value, ...]:
    return first + tuple(value for value in second if value not in first)
