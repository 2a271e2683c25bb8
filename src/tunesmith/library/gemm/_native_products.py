"""The compiled short way of products of torch tensors on a GPU, for programs that installed `tunesmith-native`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakSet

from tunesmith.devices.cuda.driver import driver_function
from tunesmith.devices.cuda.native import OUT, SCALE_A, SCALE_B, WORKSPACE, A, B, NativeStep, address_of
from tunesmith.problems.gemm import DATA_TYPES
from tunesmith.records import ZEROED_HEAD

from ._checked_call import Arguments
from ._recipes import DirectLaunch
from ._request import GemmRequest

Repeat = Callable[[Any, Any, Any, Any, Any], Any]

STRAIGHT = {"A": A, "B": B, "C": OUT, "D": OUT, "": WORKSPACE, "ScaleA": SCALE_A, "ScaleB": SCALE_B}
SWAPPED = STRAIGHT | {"A": B, "B": A, "ScaleA": SCALE_B, "ScaleB": SCALE_A}
"""The slots of a problem's operands, for the product itself and for the transposed product. Nothing reads C."""

FLOATING, BRAIN_FLOATING = 2, 4
"""kDLFloat and kDLBfloat of dlpack.h."""

INTERFACE = 2
"""How compiled code is called; an older distribution is called in another way."""
OTHER_VERSION = (
    "tunesmith-native was built for another version of tunesmith, so it is not used: run `pip install ./native` in the "
    "checkout of this version"
)

DRIVER = ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuStreamIsCapturing", "cuTensorMapReplaceAddress")


@dataclass(frozen=True, slots=True)
class NativeOwner:
    """What a kept product belongs to: its steps, and the recipe that keeps its programs."""

    steps: tuple[NativeStep, ...]
    recipe: DirectLaunch


class NativeProducts:
    """Products of torch tensors that a library has made before, repeated by compiled code.

    `repeat(a, b, out, scale_a, scale_b)` makes a product, or returns None if its layout on the current stream is not
    known; `out` and the scales may be None. Only a plain product is kept, which is a call without c, bias, activation
    and alpha, with both scales or without any.
    """

    def __init__(self, torch: Any, module: Any, driver: tuple[int, int, int, int]) -> None:
        tensor = torch.Tensor
        self.types = tensor, torch.nn.Parameter
        self._table = module.Products(
            tensor.__dlpack_c_exchange_api__, self.types, torch.is_grad_enabled, settings_of(torch),
            torch.empty_like, torch.contiguous_format, _raise_failure, *driver,
        )  # fmt: skip
        self.repeat: Repeat = self._table.repeat
        self._owners: dict[int, tuple[DirectLaunch, NativeOwner | None]] = {}
        _OPENED.add(self)

    def learn(self, recipe: DirectLaunch, arguments: Arguments, like: Any, workspace: int) -> bool:
        """Keep a product that was just made by `recipe` on the current stream, with its workspace's address there.
        Returns whether it was kept."""
        if type(arguments.a) not in self.types or type(arguments.b) not in self.types:
            return False
        owner = self._owner_of(recipe)
        if owner is None or recipe.plan is None:
            return False
        spans, described = dict(recipe.reads), tuple(step.described for step in owner.steps)
        return bool(
            self._table.learn(
                *_tensors(arguments), described, recipe.plan.context,
                workspace, spans[0], spans[1], recipe.writes, like, owner,
            )
        )  # fmt: skip

    def learn_function(self, function: Callable[..., Any], recipe: DirectLaunch, arguments: Arguments) -> bool:
        """Keep that `function(a, b, out, scale_a, scale_b)` makes products with the recipe's layout on the current
        stream, while no graph is captured. It returns None for a call that it does not make. Returns whether it was
        kept."""
        if type(arguments.a) not in self.types or type(arguments.b) not in self.types:
            return False
        spans = dict(recipe.reads)
        return bool(
            self._table.learn(*_tensors(arguments), (), 0, 0, spans[0], spans[1], recipe.writes, None, function)
        )

    def clear(self) -> None:
        """Forget all products, since their programs or workspaces will be released, and wait until none is launched."""
        self._table.clear()
        self._owners.clear()

    def clear_in_child(self) -> None:
        """`clear` in a forked child, whose parent may have been launching."""
        self._table.clear_in_child()
        self._owners.clear()

    def _owner_of(self, recipe: DirectLaunch) -> NativeOwner | None:
        """The steps of a recipe; None if there are none, or compiled code cannot take them. Kept recipes keep their
        ids."""
        if id(recipe) not in self._owners:
            steps = None
            if recipe.plan is not None and recipe.launches == 1 and recipe.ready.launched.plan.zeroed <= ZEROED_HEAD:
                steps = recipe.plan.native(SWAPPED if recipe.swapped else STRAIGHT)
            self._owners[id(recipe)] = recipe, NativeOwner(steps, recipe) if steps else None
        return self._owners[id(recipe)][1]


def _tensors(arguments: Arguments) -> tuple[Any, ...]:
    return arguments.a, arguments.b, arguments.out, arguments.scale_a, arguments.scale_b


def settings_of(torch: Any) -> tuple[tuple[int, int, Callable[[], object]], ...]:
    """DLPack's code and the bits of each data type whose products torch has a setting for, with the function that gets
    it. The same settings are part of a layout in `_torch_matmul`."""
    bindings = torch._C
    return (
        (FLOATING, 32, torch.get_float32_matmul_precision),
        (FLOATING, 16, bindings._get_cublas_allow_fp16_reduced_precision_reduction),
        (BRAIN_FLOATING, 16, bindings._get_cublas_allow_bf16_reduced_precision_reduction),
    )


def native_products(torch: Any, warn: Callable[[str], object]) -> NativeProducts | None:
    """The compiled short way with the CUDA driver; None if it is not installed, if torch is older than the interface
    that it reads tensors by, and, with a warning, if it was built for another version of tunesmith."""
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        return None
    try:
        module = importlib.import_module("tunesmith_native")
    except ImportError:
        return None
    if getattr(module, "INTERFACE", 1) != INTERFACE:
        warn(OTHER_VERSION)
        return None
    push, pop, capturing, move = (address_of(driver_function(name)) for name in DRIVER)
    return NativeProducts(torch, module, (push, pop, capturing, move))


def is_plain_product(recipe: DirectLaunch, request: GemmRequest, arguments: Arguments) -> bool:
    """Whether a call is a b alone, or with both scales, so that a call with the same a, b, out and scales means the
    same. It is asked once for a layout."""
    is_default = DATA_TYPES[request.data].dest[0] == request.dest or arguments.out is not None
    alpha = recipe.ready.launched.problem.scalars.get("alpha", 1.0)
    has_scales = not request.scaled or (arguments.scale_a is not None and arguments.scale_b is not None)
    return is_default and has_scales and alpha == 1.0 and not replace(request, scaled=False).epilogue


def _raise_failure(owner: NativeOwner, step: int, status: int) -> None:
    """Raise the error of a step that failed. The step after the last one stands for the driver's context."""
    steps = (*owner.steps, NativeStep("cuCtxPushCurrent", 0, (), ()))
    raise steps[step].error(status)


_OPENED: WeakSet[NativeProducts] = WeakSet()


def _forget_in_child() -> None:
    for products in list(_OPENED):
        products.clear_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
