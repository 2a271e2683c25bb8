"""`matmul` of arrays on the host: NumPy arrays, torch tensors on the CPU, and objects with `__dlpack__`."""

from __future__ import annotations

from typing import Any

from tunesmith.library.arrays._libraries import Array, host_array, view_of_numpy
from tunesmith.library.arrays._view import ALIGNMENT

from ._array_matmul import ArrayMatmul, LayoutRecipe
from ._checked_call import Arguments, Scalars, checked, fold_scale
from ._recipes import Addresses, DirectLaunch

ROLES = {"D": "out"}
STAND_INS: tuple[dict[str, str], dict[str, str]] = ({}, {"C": "D"})


class HostMatmul(ArrayMatmul):
    """`matmul` on the library's own device, which may share the host's memory. Takes arguments from `on_host`."""

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
        return self._make_recipe(key, "", checked(views, scalars))

    def _launch(
        self, torch: Any, layout: LayoutRecipe, recipe: DirectLaunch, arguments: Arguments, addresses: Addresses
    ) -> Any:
        a, b, c, bias, *_, out = arguments
        if out is None:
            out = layout.blank()
        arrays = {"A": b, "B": a, "D": out} if recipe.swapped else {"A": a, "B": b, "D": out}
        if c is not None:
            arrays["C"] = c
        if bias is not None:
            arrays["Bias"] = bias
        for index in range(recipe.launches):
            part = arrays if recipe.launches == 1 else {name: _matrix(x, index) for name, x in arrays.items()}
            layout.launcher.run(recipe.ready, part, ROLES, STAND_INS[c is None])
            if self._launched:
                self._launched(recipe.ready.launched)
        return out


def on_host(arguments: Arguments, scalars: Scalars) -> tuple[Arguments, Scalars]:
    """The arguments as NumPy arrays, with the scales, whose values the host can read, multiplied into alpha. Raises
    ValueError for an `out` that is a list or a tuple, for arrays on a GPU, and for a scale of several numbers."""
    if isinstance(arguments.out, (list, tuple)):
        raise ValueError("out must be an array that may be written")
    arguments = Arguments(
        *[x if x is None else host_array(x, name, "a") for name, x in zip(arguments._fields, arguments, strict=True)]
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
