"""Calls of `matmul` on one kind of arrays: recipes by layout, and what a library of arrays does around a launch."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from tunesmith.library.arrays._libraries import Arrays, NumPyArrays
from tunesmith.library.launch._launcher import Launcher
from tunesmith.library.launch._remembered import RememberedCalls
from tunesmith.logic import Rule

from ._batches import by_numpy
from ._call import Arguments, Call, Scalars
from ._epilogue import finished
from ._halves import Halved
from ._recipes import ROWS_FIRST, Addresses, ByNumPy, Copied, DirectLaunch, Empty, Recipe, Unfused, recipe
from ._request import GemmRequest
from ._untuned import untuned_sentence

OVER_AN_OPERAND = Copied({"out": ROWS_FIRST}, "", "out shares memory with an operand")


@dataclass(frozen=True, slots=True)
class KnownLayout:
    """A layout's recipe, with the device and the result that it is for.

    Of torch's tensors, `ordinal` is their GPU's, and `like` has the result's shape, type and device, and one element:
    torch makes a result like it in half of the time that it takes to be told these three.
    """

    recipe: Recipe
    launcher: Launcher
    arrays: Arrays
    request: GemmRequest
    shape: tuple[int, ...]
    ordinal: int = 0
    like: Any = None

    def blank(self, axes: tuple[int, ...] = ROWS_FIRST) -> Any:
        """Memory for the result, its axes from the slowest to the fastest."""
        order = _last(axes, len(self.shape))
        made = self.arrays.empty([self.shape[axis] for axis in order], self.request.result)
        return made if axes == ROWS_FIRST else (self.arrays.torch or np).moveaxis(made, tuple(range(made.ndim)), order)


class Calls(RememberedCalls[KnownLayout], ABC):
    """Calls of `matmul` by layout."""

    def matmul(self, torch: Any, given: Arguments, scalars: Scalars) -> Any:
        """activation(alpha scale_a scale_b a b + bias) + beta c, into `out` if there is one."""
        key, at = self._seen(torch, given, scalars)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = self._learn(torch, key, given, scalars)
            match known.recipe:
                case DirectLaunch() as recipe:
                    if given.out is not None and recipe.overwrites(at):
                        return self._copied(known, OVER_AN_OPERAND, given, scalars)
                    return self._launch(torch, known, recipe, given, at)
                case Copied() as recipe:
                    return self._copied(known, recipe, given, scalars)
                case ByNumPy():
                    return by_numpy(given, scalars, known.request, known.blank)
                case Halved() as recipe:
                    return self._in_halves(known, recipe, given, scalars)
                case recipe:
                    return self._followed(known, recipe, given, scalars)

    @abstractmethod
    def _seen(self, torch: Any, given: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        """All that a recipe depends on, and the arrays' addresses, of which it depends on the alignment alone."""

    @abstractmethod
    def _learn(self, torch: Any, key: Any, given: Arguments, scalars: Scalars) -> KnownLayout:
        """Check the call and `_keep` what its layout comes to."""

    @abstractmethod
    def _launch(self, torch: Any, known: KnownLayout, recipe: DirectLaunch, given: Arguments, at: Addresses) -> Any:
        """The result, of arrays that overlap nowhere."""

    def _keep(self, key: Any, selector: str, call: Call, arrays: Arrays | None = None, **more: Any) -> KnownLayout:
        """Find out what a layout comes to. Raises UserError where no logic serves it, or nothing runs."""
        launcher = self._launcher_of(selector)
        found, arrays = recipe(launcher, call), arrays or NumPyArrays(launcher.device.alignment)
        if isinstance(found, ByNumPy) and not found.is_there:
            where = launcher.device.target.name
            _say_once(launcher, f"no kernel computes {found.instead.name} on {where}: NumPy multiplies such arrays")
        elif isinstance(found, ByNumPy | DirectLaunch) and found.instead:
            by, kind = "NumPy" if isinstance(found, ByNumPy) else "the vendor's BLAS", found.instead.name
            _say_once(
                launcher, f"no logic is for {kind}: {by} multiplies such batches; tune that type to have a kernel"
            )
        elif isinstance(found, DirectLaunch) and found.ready.launched.choice.rule is Rule.HEURISTIC:
            _say_once(launcher, untuned_sentence(launcher, found.ready.launched.problem.type))
        return self._remember(key, KnownLayout(found, launcher, arrays, call.request, call.shape, **more))

    def _copied(self, known: KnownLayout, recipe: Copied, given: Arguments, scalars: Scalars) -> Any:
        """The same call on copies, which the arrays' own library makes."""
        reads = {
            name: _copy(known, getattr(given, name), axes, once=name == recipe.shared)
            for name, axes in recipe.axes.items()
            if name != "out"
        }
        inner = given._replace(**reads)
        if "out" not in recipe.axes:
            return self.matmul(known.arrays.torch, inner, scalars)
        result = self.matmul(known.arrays.torch, inner._replace(out=known.blank(recipe.axes["out"])), scalars)
        return _into(known.blank() if given.out is None else given.out, result)

    def _in_halves(self, known: KnownLayout, recipe: Halved, given: Arguments, scalars: Scalars) -> Any:
        """Both halves of the result, one after the other; on the host."""
        out, operands = given.out, (x for x in given[:-1] if x is not None)
        if out is not None and any(np.may_share_memory(out, x) for x in operands):
            return self._copied(known, OVER_AN_OPERAND, given, scalars)
        out = known.blank() if out is None else out
        for half in recipe.halves(given._replace(out=out)):
            self.matmul(None, half, scalars)
        return out

    def _followed(self, known: KnownLayout, recipe: Unfused | Empty, given: Arguments, scalars: Scalars) -> Any:
        """The product by a kernel, or zeros, and the rest of the call by the arrays' own library."""
        if isinstance(recipe, Unfused):
            left, like = recipe.left, recipe.like.name
            what = f"no logic is for {like}: after the product comes {left.epilogue}, in steps of their own"
            _say_once(known.launcher, f"{what}; tune that type to have it all in one kernel")
            inner = given._replace(c=None, bias=None, out=None)
            inner = inner if recipe.done.scaled else inner._replace(scale_a=None, scale_b=None)
            product = self.matmul(known.arrays.torch, inner, Scalars(None, scalars.alpha, 0.0, known.request.result))
        else:
            left, product = known.request, _into(known.blank(), 0)
        result = finished(known.arrays.torch, product, left, scalars.beta, given)
        return _into(known.blank() if given.out is None else given.out, result)


def _say_once(launcher: Launcher, sentence: str) -> None:
    """As a warning at the caller's line, once for each device."""
    if sentence in launcher.warned:
        return
    launcher.warned.add(sentence)
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame and frame.f_globals.get("__name__", "").startswith("tunesmith."):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)


def _copy(known: KnownLayout, x: Any, axes: tuple[int, ...], once: bool) -> Any:
    """A copy of one matrix of the batch, or else of one for each matrix of the result; of a bias as it is."""
    if x.ndim > 1 and not (once and x.ndim == 2):
        x = x[:1] if once else (known.arrays.torch or np).broadcast_to(x, (*known.shape[:-2], *x.shape[-2:]))
    return known.arrays.copy(x, _last(axes, x.ndim))


def _last(axes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Those of the last ones alone: of a matrix that is no batch, or of a vector."""
    return tuple(axis - 3 + count for axis in axes if axis >= 3 - count)


def _into(out: Any, values: Any) -> Any:
    out[...] = values
    return out
