"""Every kernel family by name, and which of them a configuration means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from tunesmith.records import Configuration, ProblemType, Registry, Target, Value
from tunesmith.spaces import Parameter, Space

from .base import Kernel

VENDOR = "VendorBlas"
"""The family that calls the vendor's library."""

KERNELS: Registry[Kernel] = Registry(
    "kernel",
    {
        "TiledGemm": "tunesmith.kernels.gemm.opencl.tiled:TiledGemm",
        "RegisterGemm": "tunesmith.kernels.gemm.opencl.register:RegisterGemm",
        "CudaSimtGemm": "tunesmith.kernels.gemm.cuda.simt:CudaSimtGemm",
        "CudaWgmmaGemm": "tunesmith.kernels.gemm.cuda.wgmma:CudaWgmmaGemm",
        "TritonTmaGemm": "tunesmith.kernels.gemm.triton.tma:TritonTmaGemm",
        "TritonGemm": "tunesmith.kernels.gemm.triton.dense:TritonGemm",
        "TritonGemv": "tunesmith.kernels.gemm.triton.gemv:TritonGemv",
        VENDOR: "tunesmith.kernels.vendor:VendorBlas",
        "PortBlasGemm": "tunesmith.kernels.gemm.portblas:PortBlasGemm",
        "PortBlasCuda": "tunesmith.kernels.gemm.portblas:PortBlasCuda",
        "Custom": "tunesmith.kernels.custom:CustomKernel",
        "CustomCuda": "tunesmith.kernels.custom:CustomCudaKernel",
        "OpenCLRandom": "tunesmith.kernels.random:OpenCLRandom",
        "CudaRandom": "tunesmith.kernels.random:CudaRandom",
        "FakeGemm": "tunesmith.kernels.fake:FakeGemm",
    },
    group="tunesmith.kernels",
)
"""The order counts: where a configuration leaves open which family is meant, the first that fits is taken."""

HIDDEN = ("FakeGemm",)
"""Not offered to people: for devices that a search does not show either."""

LANGUAGE, OPEN = "KernelLanguage", "any"
"""What picks the language, and its default where nothing speaks for one: then the device decides, once it is known."""

ABSENT = "none"
"""The default of a parameter that a family is named by: none of these families is meant."""


def families(operation: str, hidden: bool = True) -> list[Kernel]:
    """The families that compute an operation, in the registry's order; those for people only without `hidden`."""
    return [one for one in KERNELS.values() if one.operation == operation and (hidden or one.name not in HIDDEN)]


def family_for(operation: str, config: Configuration) -> Kernel:
    """The family that a configuration means: that of its `KernelLanguage`, whose form it does not contradict. Where the
    configuration mentions what some families are named by, it is one of these; else it is none of them.

    Raises LookupError when there is none, naming the forms that exist.
    """
    candidates = families(operation)
    named = [kernel for kernel in candidates if config.get(kernel.named_by, ABSENT) != ABSENT]
    for kernel in named or (kernel for kernel in candidates if not kernel.named_by):
        chosen_by = {LANGUAGE: kernel.language, **kernel.form}
        if all(config.get(name, value) == value for name, value in chosen_by.items()):
            return kernel
    asked = {name: config[name] for name in (LANGUAGE, *_form_names(candidates)) if name in config}
    shown = families(operation, hidden=False)
    known = ", ".join(f"{kernel.name} ({kernel.language} {dict(kernel.form)})" for kernel in shown)
    raise LookupError(f"no {operation} kernel for {asked}; there are {known}")


def tuning_space(problem_type: ProblemType, target: Target | None = None, hidden: bool = False) -> Space:
    """Every parameter that a tuning file may name for this type: the union over the operation's families.

    A parameter that several families have keeps the first one's default and meaning and lists the values of all; but
    the language is OPEN where they are the same kernel in several. With `hidden`, the families that only tests use are
    among them.
    """
    united: dict[str, Parameter] = {}
    spaces = [kernel.space(problem_type, target) for kernel in families(problem_type.operation, hidden)]
    for parameter in (parameter for space in spaces for parameter in space):
        first = united.get(parameter.name, parameter)
        united[parameter.name] = replace(first, values=_merged(first.values, parameter.values))
    for name in {kernel.named_by for kernel in families(problem_type.operation, hidden)} & united.keys():
        united[name] = replace(united[name], default=ABSENT, values=_merged((ABSENT,), united[name].values))
    if LANGUAGE in united and len(united[LANGUAGE].values) > 1 and _alike(spaces):
        united[LANGUAGE] = replace(united[LANGUAGE], default=OPEN)
    return Space(tuple(united.values()))


def chosen(problem_type: ProblemType, values: Mapping[str, Sequence[Value]]) -> dict[str, frozenset[str]]:
    """The families that combinations of these values mean, by name, each with the parameters that it has; what chooses
    among families counts for all of them."""
    candidates = families(problem_type.operation)
    named_by = {kernel.named_by for kernel in candidates if kernel.named_by}
    listed: dict[str, Sequence[Value]] = {}
    for name in (LANGUAGE, *_form_names(candidates)):
        if name in named_by:
            # Whether such a parameter is mentioned decides, whatever its value.
            mentioned = {value != ABSENT: value for value in values.get(name, (ABSENT,))}
            listed[name] = list(mentioned.values())
        elif name in values:
            listed[name] = languages(problem_type) if name == LANGUAGE and OPEN in values[name] else values[name]
    found: dict[str, frozenset[str]] = {}
    for combination in product(*listed.values()):
        with suppress(LookupError):
            kernel = family_for(problem_type.operation, Configuration(zip(listed, combination, strict=True)))
            own = (parameter.name for parameter in kernel.space(problem_type))
            found[kernel.name] = frozenset((*own, LANGUAGE, *named_by))
    return found


def languages(problem_type: ProblemType) -> tuple[str, ...]:
    """The languages in which it can be computed, in the registry's order."""
    able = (kernel.language for kernel in families(problem_type.operation) if kernel.space(problem_type).parameters)
    return tuple(dict.fromkeys(able))


def _alike(spaces: Iterable[Space]) -> bool:
    """Whether all families, but for those that have nothing to offer for the type, have the same parameters."""
    return len({frozenset(parameter.name for parameter in space) for space in spaces if space.parameters}) == 1


def _form_names(kernels: Iterable[Kernel]) -> list[str]:
    return sorted({name for kernel in kernels for name in (*kernel.form, kernel.named_by) if name})


def _merged(first: tuple[Value, ...], second: tuple[Value, ...]) -> tuple[Value, ...]:
    return first + tuple(value for value in second if value not in first)
