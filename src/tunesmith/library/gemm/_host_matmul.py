"""`matmul` of arrays on the host: NumPy arrays, torch tensors on the CPU, and objects with `__dlpack__`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy import matmul

from tunesmith.library.arrays._libraries import Array, host_array, view_of_numpy
from tunesmith.library.arrays._view import ALIGNMENT
from tunesmith.library.launch._launcher import LaunchRecord
from tunesmith.library.launch._layout_cache import REMEMBERED

from ._array_matmul import ArrayMatmul, LayoutRecipe
from ._by_numpy import Quiet, is_blas_matrix, is_plain
from ._checked_call import Arguments, Scalars, checked, fold_scale
from ._recipes import Addresses, ByBlas, DirectLaunch

ROLES = {"D": "out"}
STAND_INS: tuple[dict[str, str], dict[str, str]] = ({}, {"C": "D"})


class HostMatmul(ArrayMatmul):
    """`matmul` on the library's own device, which may share the host's memory. Takes arguments from `on_host`."""

    def __init__(self, *shared: Any) -> None:
        super().__init__(*shared)
        self._quiet = Quiet()
        self.products: dict[Any, tuple[np.dtype[Any], LaunchRecord]] = {}

    def known_product(self, a: Array, b: Array, out: Array | None) -> Array | None:
        """a b, if a product of this layout was made before and the BLAS is the choice for it; else None. This is the
        short way of most calls on a CPU: one look-up, and NumPy's own call. Only the arrays' layouts and data types
        matter: NumPy checks for itself that `out` may be written and overlaps no operand."""
        if out is None:
            found = self.products.get((a.shape, a.strides, b.shape, b.strides))
        else:
            found = self.products.get((a.shape, a.strides, b.shape, b.strides, out.shape, out.strides))
        if found is None:
            return None
        dtype, record = found
        same = a.dtype is dtype is b.dtype and (out is None or out.dtype is dtype)
        if not same and any(x is not None and x.dtype != dtype for x in (a, b, out)):
            return None  # an array from another process has a data type of its own, which is equal
        try:
            if out is None:
                out = self._quiet.run(matmul, a, b)
            else:
                self._quiet.run(matmul, a, b, out)
        except (ValueError, RuntimeError):
            return None  # the whole call says what is wrong, or is made within another call
        if self._launched:
            with self._lock:
                self._launched(record)
        return out

    def known_product_of_tensors(self, a: Any, b: Any, out: Any) -> Any:
        """`known_product` of torch tensors in the host's memory; None for any other arrays."""
        torch = sys.modules.get("torch")
        tensor = getattr(torch, "Tensor", None)
        if not (a.__class__ is tensor is b.__class__ and (out is None or out.__class__ is tensor)):
            return None
        if tensor is None or not (a.is_cpu and b.is_cpu):
            return None
        try:
            result = self.known_product(a.numpy(), b.numpy(), None if out is None else out.numpy())
        except (RuntimeError, TypeError):
            return None  # a tensor that requires a gradient, has no strides, or has a type that NumPy lacks
        if result is None or out is not None:
            return result if result is None else out
        return torch.from_numpy(result)  # type: ignore[union-attr]

    def clear(self) -> None:
        super().clear()
        self.products.clear()

    def _layout_key(self, torch: Any, arguments: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        layouts: list[Any] = [arguments.out is None or arguments.out.flags.writeable]
        addresses = []
        for x in arguments:
            if x is None:
                layouts.append(None)
                addresses.append(0)
                continue
            address = x.ctypes.data
            layouts.append((x.shape, x.strides, x.dtype, address % ALIGNMENT))
            addresses.append(address)
        return (tuple(layouts), scalars), addresses

    def _find_recipe(self, torch: Any, key: Any, arguments: Arguments, scalars: Scalars) -> LayoutRecipe:
        views = Arguments(*(None if x is None else view_of_numpy(x) for x in arguments))
        layout = self._make_recipe(key, "", checked(views, scalars))
        if isinstance(layout.recipe, ByBlas) and not layout.recipe.shared and is_plain(scalars, layout.request):
            self._remember_product(arguments, layout.recipe.launched)
        return layout

    def _remember_product(self, arguments: Arguments, launched: LaunchRecord) -> None:
        """Let the next call of this layout go the short way, if NumPy itself gives such arrays to the BLAS."""
        a, b, *_, out = arguments
        arrays = [x for x in arguments if x is not None]
        if len({x.dtype for x in arrays}) == 1 and all(x.__class__ is np.ndarray and is_blas_matrix(x) for x in arrays):
            if len(self.products) >= REMEMBERED:
                self.products.clear()
            key = tuple(part for x in (a, b, out) if x is not None for part in (x.shape, x.strides))
            self.products[key] = (a.dtype, launched)

    def _launch(
        self, torch: Any, layout: LayoutRecipe, recipe: DirectLaunch, arguments: Arguments, addresses: Addresses
    ) -> Any:
        a, b, c, bias, *_, out = arguments
        if out is None:
            out = layout.blank()
            addresses = (*addresses[:-1], out.ctypes.data)
        stand_ins = STAND_INS[c is None]
        if recipe.launches == 1 and bias is None:
            at = tuple(addresses)
            if layout.launcher.run_in_place(recipe.ready, at, lambda: recipe.host_operands(at), stand_ins):
                if self._launched:
                    self._launched(recipe.ready.launched)
                return out
        arrays = {"A": b, "B": a, "D": out} if recipe.swapped else {"A": a, "B": b, "D": out}
        if c is not None:
            arrays["C"] = c
        if bias is not None:
            arrays["Bias"] = bias
        for index in range(recipe.launches):
            part = arrays if recipe.launches == 1 else {name: _matrix(x, index) for name, x in arrays.items()}
            layout.launcher.run(recipe.ready, part, ROLES, stand_ins)
            if self._launched:
                self._launched(recipe.ready.launched)
        return out


def on_host(arguments: Arguments, scalars: Scalars) -> tuple[Arguments, Scalars]:
    """The arguments as NumPy arrays, with the scales, whose values the host can read, multiplied into alpha. Raises
    ValueError for an `out` that is a list or a tuple, for arrays on a GPU, and for a scale of several numbers."""
    if isinstance(arguments.out, (list, tuple)):
        raise ValueError("out must be an array that may be written")
    arguments = Arguments(
        *[
            x if x is None or x.__class__ is np.ndarray else host_array(x, name, "a")
            for name, x in zip(arguments._fields, arguments, strict=True)
        ]
    )
    for name in ("scale_a", "scale_b") if arguments.scale_a is not None or arguments.scale_b is not None else ():
        if (scale := getattr(arguments, name)) is not None:
            if scale.size != 1:
                raise ValueError(f"{name} has shape {scale.shape}; it is one number")
            arguments, scalars = fold_scale(arguments, scalars, name, float(scale.reshape(())))
    return arguments, scalars


def _matrix(x: Array, index: int) -> Array:
    """One matrix of a batch; a single matrix or a vector serves every matrix of the result as it is."""
    return x if x.ndim < 3 else x[index if len(x) > 1 else 0]
