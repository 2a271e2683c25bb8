"""Every kernel family by name, and the family that a configuration means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product

from tunesmith.records import Configuration, ProblemType, Registry, Solution, Target, Value
from tunesmith.spaces import Parameter, Space

from .base import Kernel

VENDOR = "VendorBlas"
"""The family that calls the vendor's library."""

OWN = {
    "GEMM": {
        "TiledGemm": "tunesmith.kernels.gemm.opencl.tiled:TiledGemm",
        "RegisterGemm": "tunesmith.kernels.gemm.opencl.register:RegisterGemm",
        "BlockedGemm": "tunesmith.kernels.gemm.opencl.blocked:BlockedGemm",
        "CudaSimtGemm": "tunesmith.kernels.gemm.cuda.simt:CudaSimtGemm",
        "CudaWgmmaGemm": "tunesmith.kernels.gemm.cuda.wgmma:CudaWgmmaGemm",
        "TritonTmaGemm": "tunesmith.kernels.gemm.triton.tma:TritonTmaGemm",
        "TritonGemm": "tunesmith.kernels.gemm.triton.dense:TritonGemm",
        "TritonGemv": "tunesmith.kernels.gemm.triton.gemv:TritonGemv",
        VENDOR: "tunesmith.kernels.vendor:VendorBlas",
        "PortBlasGemm": "tunesmith.kernels.gemm.portblas:PortBlasGemm",
        "PortBlasCuda": "tunesmith.kernels.gemm.portblas:PortBlasCuda",
        "FakeGemm": "tunesmith.kernels.fake:FakeGemm",
    },
    "Custom": {
        "Custom": "tunesmith.kernels.custom:CustomKernel",
        "CustomCuda": "tunesmith.kernels.custom:CustomCudaKernel",
        "CustomTriton": "tunesmith.kernels.custom:CustomTritonKernel",
    },
    "Random": {
        "OpenCLRandom": "tunesmith.kernels.random:OpenCLRandom",
        "CudaRandom": "tunesmith.kernels.random:CudaRandom",
    },
}
"""Our families by operation, so that only an operation's families are imported. The order matters: if several families
fit a configuration, the first is taken."""

KERNELS: Registry[Kernel] = Registry(
    "kernel",
    {name: where for families in OWN.values() for name, where in families.items()},
    group="tunesmith.kernels",
    parts={name: operation for operation, families in OWN.items() for name in families},
)

HIDDEN = ("FakeGemm",)
"""Families that are not offered to users: they run on devices that a search for devices does not show either."""

LANGUAGE, OPEN = "KernelLanguage", "any"
"""The parameter that picks the language, and its value that leaves the language to the device, once that is known."""

ABSENT = "none"
"""The default of a `named_by` parameter: it names none of the families that have this parameter."""


def families_of(operation: str, hidden: bool = True) -> list[Kernel]:
    """An operation's families, in the registry's order; without `hidden`, only those that are offered to users."""
    kernels = (kernel for kernel in KERNELS.complete(operation) if kernel.operation == operation)
    return [kernel for kernel in kernels if hidden or kernel.name not in HIDDEN]


_Form = tuple[Kernel, str, tuple[tuple[str, Value], ...]]
"""A family, its `named_by`, and the values that a configuration of the family does not contradict."""


@cache
def _forms(kernels: tuple[Kernel, ...], operation: str) -> tuple[_Form, ...]:
    candidates = (kernel for kernel in kernels if kernel.operation == operation)
    return tuple(
        (family, family.named_by, ((LANGUAGE, family.language), *family.form.items())) for family in candidates
    )


def family_for(operation: str, config: Configuration) -> Kernel:
    """The family that a configuration means: the first with its `KernelLanguage` whose form it does not contradict.

    If the configuration sets a family's `named_by` parameter, only those families are considered; otherwise only
    families without one. Raises LookupError, which names the forms that exist, if no family fits.
    """
    forms = _forms(KERNELS.complete(operation), operation)
    named = [form for form in forms if form[1] and config.get(form[1], ABSENT) != ABSENT]
    for kernel, _, values in named or (form for form in forms if not form[1]):
        if all(config.get(name, value) == value for name, value in values):
            return kernel
    candidates = families_of(operation)
    requested = {name: config[name] for name in (LANGUAGE, *_form_names(candidates)) if name in config}
    offered = families_of(operation, hidden=False)
    offers = ", ".join(f"{kernel.name} ({kernel.language} {dict(kernel.form)})" for kernel in offered)
    raise LookupError(f"no {operation} kernel for {requested}; there are {offers}")


def has_kernel_of(solution: Solution, target: Target | None = None) -> bool:
    """Whether a solution's kernel is installed here and has just the solution's parameters. Another version's may
    not."""
    if solution.kernel not in KERNELS:
        return False
    return solution.configuration.keys() == KERNELS[solution.kernel].space(solution.type, target).defaults.keys()


def tuning_space(problem_type: ProblemType, target: Target | None = None, hidden: bool = False) -> Space:
    """Every parameter that a tuning file may name for this type: the union over the operation's families.

    A parameter that several families have keeps the first family's default and meaning, and lists the values of all.
    Exception: the language's default is OPEN if the families are the same kernel in several languages. With `hidden`,
    the families that only tests use are included.
    """
    united: dict[str, Parameter] = {}
    spaces = [kernel.space(problem_type, target) for kernel in families_of(problem_type.operation, hidden)]
    for parameter in (parameter for space in spaces for parameter in space):
        first = united.get(parameter.name, parameter)
        united[parameter.name] = replace(first, values=_merged(first.values, parameter.values))
    for name in {kernel.named_by for kernel in families_of(problem_type.operation, hidden)} & united.keys():
        united[name] = replace(united[name], default=ABSENT, values=_merged((ABSENT,), united[name].values))
    if LANGUAGE in united and len(united[LANGUAGE].values) > 1 and _alike(spaces):
        united[LANGUAGE] = replace(united[LANGUAGE], default=OPEN)
    return Space(tuple(united.values()))


def families_meant(problem_type: ProblemType, values: Mapping[str, Sequence[Value]]) -> dict[str, frozenset[str]]:
    """The families that combinations of these values mean: the parameters of each family by its name.

    The parameters that pick a family count as parameters of every family.
    """
    candidates = families_of(problem_type.operation)
    named_by = {kernel.named_by for kernel in candidates if kernel.named_by}
    listed: dict[str, Sequence[Value]] = {}
    for name in (LANGUAGE, *_form_names(candidates)):
        if name in named_by:
            # Only whether such a parameter is set picks the family, so one value of each kind is enough.
            value_by_set = {value != ABSENT: value for value in values.get(name, (ABSENT,))}
            listed[name] = list(value_by_set.values())
        elif name in values:
            listed[name] = languages(problem_type) if name == LANGUAGE and OPEN in values[name] else values[name]
    parameters: dict[str, frozenset[str]] = {}
    for combination in product(*listed.values()):
        with suppress(LookupError):
            kernel = family_for(problem_type.operation, Configuration(zip(listed, combination, strict=True)))
            own_names = (parameter.name for parameter in kernel.space(problem_type))
            parameters[kernel.name] = frozenset((*own_names, LANGUAGE, *named_by))
    return parameters


def languages(problem_type: ProblemType) -> tuple[str, ...]:
    """The languages in which the type can be computed, in the registry's order."""
    able = (kernel.language for kernel in families_of(problem_type.operation) if kernel.space(problem_type).parameters)
    return tuple(dict.fromkeys(able))


def _alike(spaces: Iterable[Space]) -> bool:
    """Whether all families have the same parameters, not counting families without parameters for the type."""
    return len({frozenset(parameter.name for parameter in space) for space in spaces if space.parameters}) == 1


def _form_names(kernels: Iterable[Kernel]) -> list[str]:
    return sorted({name for kernel in kernels for name in (*kernel.form, kernel.named_by) if name})


def _merged(first: tuple[Value, ...], second: tuple[Value, ...]) -> tuple[Value, ...]:
    return first + tuple(value for value in second if value not in first)
