"""`matmul` for one kind of arrays: keeps a recipe for each layout of arguments, and carries recipes out."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from tunesmith.library.arrays._libraries import Arrays, NumPyArrays
from tunesmith.library.launch._launcher import Launcher, LaunchRecord
from tunesmith.library.launch._layout_cache import LayoutCache
from tunesmith.logic import Rule

from ._by_numpy import by_numpy
from ._checked_call import Arguments, CheckedCall, Scalars
from ._epilogue import finished
from ._halves import Halved
from ._recipes import ROWS_FIRST, Addresses, ByBlas, ByNumPy, Copied, DirectLaunch, Empty, Recipe, Unfused, recipe_for
from ._request import GemmRequest
from ._untuned import blas_sentence, untuned_sentence

OVER_AN_OPERAND = Copied({"out": ROWS_FIRST}, "", "out shares memory with an operand")


@dataclass(frozen=True, slots=True)
class LayoutRecipe:
    """The recipe for calls whose arguments have one layout, with the launcher and the shape and type of the result.

    For torch tensors, `ordinal` is the number of their GPU. `like` is a tensor with the result's shape, type and
    device, and memory for one element: `torch.empty_like` takes half of the time of `torch.empty` with these three.
    With `by_torch`, torch's own operator makes the product that the recipe describes. `is_plain` is as
    `is_plain_product`.
    """

    recipe: Recipe
    launcher: Launcher
    arrays: Arrays
    request: GemmRequest
    shape: tuple[int, ...]
    ordinal: int = 0
    like: Any = None
    by_torch: bool = False
    is_plain: bool = False

    def blank(self, axes: tuple[int, ...] = ROWS_FIRST) -> Any:
        """Uninitialised memory for the result. `axes` are the result's axes from the slowest to the fastest."""
        order = _last_axes(axes, len(self.shape))
        result = self.arrays.empty([self.shape[axis] for axis in order], self.request.result)
        if axes == ROWS_FIRST:
            return result
        return (self.arrays.torch or np).moveaxis(result, tuple(range(result.ndim)), order)


class ArrayMatmul(LayoutCache[LayoutRecipe], ABC):
    """`matmul` for one kind of arrays. Subclasses read layouts off the arrays and launch kernels on their memory."""

    def matmul(self, torch: Any, arguments: Arguments, scalars: Scalars) -> Any:
        """activation(alpha scale_a scale_b a b + bias) + beta c, into `out` if there is one."""
        key, addresses = self._layout_key(torch, arguments, scalars)
        with self._lock:
            layout = self._entries.get(key)
            if layout is None:
                layout = self._find_recipe(torch, key, arguments, scalars)
            match layout.recipe:
                case DirectLaunch() as recipe:
                    if arguments.out is not None and recipe.overwrites(addresses):
                        return self._on_copies(layout, OVER_AN_OPERAND, arguments, scalars)
                    return self._launch(torch, layout, recipe, arguments, addresses)
                case ByBlas() as recipe:
                    result = by_numpy(arguments, scalars, layout.request, layout.blank, recipe.shared)
                    if self._launched:
                        self._launched(recipe.launched)
                    return result
                case Copied() as recipe:
                    return self._on_copies(layout, recipe, arguments, scalars)
                case ByNumPy():
                    return by_numpy(arguments, scalars, layout.request, layout.blank)
                case Halved() as recipe:
                    return self._in_halves(layout, recipe, arguments, scalars)
                case recipe:
                    return self._in_steps(layout, recipe, arguments, scalars)

    @abstractmethod
    def _layout_key(self, torch: Any, arguments: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        """A key of everything that a recipe depends on, and the arrays' addresses. A recipe depends on the addresses'
        alignment only."""

    @abstractmethod
    def _find_recipe(self, torch: Any, key: Any, arguments: Arguments, scalars: Scalars) -> LayoutRecipe:
        """Check the call, then find and keep the recipe of its layout (by `_make_recipe`)."""

    @abstractmethod
    def _launch(
        self, torch: Any, layout: LayoutRecipe, recipe: DirectLaunch, arguments: Arguments, addresses: Addresses
    ) -> Any:
        """Launch on arrays that do not overlap the output. Returns the result."""

    def _make_recipe(
        self, key: Any, selector: str, call: CheckedCall, arrays: Arrays | None = None, **more: Any
    ) -> LayoutRecipe:
        """Make and keep the recipe of a layout. Raises UserError if no type serves the call, or no solution runs."""
        launcher = self._launcher_of(selector)
        recipe, arrays = recipe_for(launcher, call), arrays or NumPyArrays(launcher.device.alignment)
        if isinstance(recipe, ByNumPy) and not recipe.has_kernel:
            what = f"no kernel computes {recipe.type_to_tune.name} on {launcher.device.target.name}"
            warn_once(launcher, f"{what}: NumPy multiplies such arrays")
        elif isinstance(recipe, ByNumPy | DirectLaunch) and recipe.type_to_tune:
            by, kind = "NumPy" if isinstance(recipe, ByNumPy) else "the vendor's BLAS", recipe.type_to_tune.name
            what = f"no logic is for {kind}: {by} multiplies such batches"
            warn_once(launcher, f"{what}; tune that type to have a kernel")
        elif isinstance(recipe, DirectLaunch) and recipe.ready.launched.choice.rule is Rule.HEURISTIC:
            warn_once(launcher, untuned_sentence(launcher, recipe.ready.launched.problem.type))
        elif launched := _by_blas_unasked(launcher, recipe):
            warn_once(launcher, blas_sentence(launcher, launched.problem.type))
        return self._remember(key, LayoutRecipe(recipe, launcher, arrays, call.request, call.shape, **more))

    def _on_copies(self, layout: LayoutRecipe, recipe: Copied, arguments: Arguments, scalars: Scalars) -> Any:
        """The same call on copies of some arguments. The arrays' own library makes the copies."""
        copies = {
            name: _copy(layout, getattr(arguments, name), axes, once=name == recipe.shared)
            for name, axes in recipe.axes.items()
            if name != "out"
        }
        inner = arguments._replace(**copies)
        if "out" not in recipe.axes:
            return self.matmul(layout.arrays.torch, inner, scalars)
        result = self.matmul(layout.arrays.torch, inner._replace(out=layout.blank(recipe.axes["out"])), scalars)
        return _assign(layout.blank() if arguments.out is None else arguments.out, result)

    def _in_halves(self, layout: LayoutRecipe, recipe: Halved, arguments: Arguments, scalars: Scalars) -> Any:
        """Compute the two halves of the result one after the other, on the host."""
        out, operands = arguments.out, (x for x in arguments[:-1] if x is not None)
        if out is not None and any(np.may_share_memory(out, x) for x in operands):
            return self._on_copies(layout, OVER_AN_OPERAND, arguments, scalars)
        out = layout.blank() if out is None else out
        for half in recipe.halves(arguments._replace(out=out)):
            self.matmul(None, half, scalars)
        return out

    def _in_steps(self, layout: LayoutRecipe, recipe: Unfused | Empty, arguments: Arguments, scalars: Scalars) -> Any:
        """Compute the product by a kernel (zeros for an empty sum), then the rest by the arrays' own library."""
        if isinstance(recipe, Unfused):
            remaining, fused = recipe.remaining, recipe.fused_type.name
            what = f"no logic is for {fused}: after the product comes {remaining.epilogue}, in steps of their own"
            advice = "tune that type to have it all in one kernel" if recipe.has_kernel else "no kernel does it in one"
            warn_once(layout.launcher, f"{what}; {advice}")
            inner = arguments._replace(c=None, bias=None, out=None)
            inner = inner if recipe.computed.scaled else inner._replace(scale_a=None, scale_b=None)
            product = self.matmul(layout.arrays.torch, inner, Scalars(None, scalars.alpha, 0.0, layout.request.result))
        else:
            remaining, product = layout.request, _assign(layout.blank(), 0)
        result = finished(layout.arrays.torch, product, remaining, scalars.beta, arguments)
        return _assign(layout.blank() if arguments.out is None else arguments.out, result)


def warn_once(launcher: Launcher, sentence: str) -> None:
    """Warn at the caller's line, once for each device."""
    if sentence in launcher.warned:
        return
    launcher.warned.add(sentence)
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame and frame.f_globals.get("__name__", "").startswith("tunesmith."):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)


def _by_blas_unasked(launcher: Launcher, recipe: Recipe) -> LaunchRecord | None:
    """The launch, if a BLAS computes a type without a logic; else None."""
    if isinstance(recipe, ByBlas):
        launched = recipe.launched
    elif isinstance(recipe, DirectLaunch) and recipe.ready.launched.choice.rule is Rule.VENDOR:
        launched = recipe.ready.launched
    else:
        return None
    return launched if launched.problem.type not in launcher.logics else None


def _copy(layout: LayoutRecipe, x: Any, axes: tuple[int, ...], once: bool) -> Any:
    """A copy of an argument with its axes in this order, from the slowest to the fastest. `once` copies a single matrix
    for the whole batch, otherwise the copy has a matrix for each matrix of the result. A bias keeps its shape."""
    if x.ndim > 1 and not (once and x.ndim == 2):
        x = x[:1] if once else (layout.arrays.torch or np).broadcast_to(x, (*layout.shape[:-2], *x.shape[-2:]))
    return layout.arrays.copy(x, _last_axes(axes, x.ndim))


def _last_axes(axes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The order of the last `count` axes alone: 2 for a matrix without a batch, 1 for a vector."""
    return tuple(axis - 3 + count for axis in axes if axis >= 3 - count)


def _assign(out: Any, values: Any) -> Any:
    out[...] = values
    return out
