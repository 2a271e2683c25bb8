"""`matmul` on the host's memory, as NumPy shows it: of its own arrays, of torch tensors on the CPU, by DLPack."""

from __future__ import annotations

from typing import Any

from tunesmith.library.arrays._libraries import Array, host_array, view_of_numpy
from tunesmith.library.arrays._view import ALIGNMENT

from ._call import Arguments, Scalars, checked, in_alpha
from ._calls import Calls, KnownLayout
from ._recipes import Addresses, DirectLaunch

ROLES = {"D": "out"}
STAND_INS: tuple[dict[str, str], dict[str, str]] = ({}, {"C": "D"})


class HostCalls(Calls):
    """On the library's own device, which may share the host's memory; of arguments as `on_host` gives them."""

    def _seen(self, torch: Any, given: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        layouts: list[Any] = [given.out is None or given.out.flags.writeable]
        at = []
        for x in given:
            if x is None:
                layouts.append(None)
                at.append(0)
                continue
            address = x.ctypes.data
            layouts.append((x.shape, x.strides, x.dtype, address % ALIGNMENT))
            at.append(address)
        return (tuple(layouts), scalars), at

    def _learn(self, torch: Any, key: Any, given: Arguments, scalars: Scalars) -> KnownLayout:
        seen = Arguments(*(None if x is None else view_of_numpy(x) for x in given))
        return self._keep(key, "", checked(seen, scalars))

    def _launch(self, torch: Any, known: KnownLayout, recipe: DirectLaunch, given: Arguments, at: Addresses) -> Any:
        a, b, c, bias, *_, out = given
        if out is None:
            out = known.blank()
        arrays = {"A": b, "B": a, "D": out} if recipe.swapped else {"A": a, "B": b, "D": out}
        if c is not None:
            arrays["C"] = c
        if bias is not None:
            arrays["Bias"] = bias
        for index in range(recipe.launches):
            part = arrays if recipe.launches == 1 else {name: _matrix(x, index) for name, x in arrays.items()}
            known.launcher.run(recipe.ready, part, ROLES, STAND_INS[c is None])
            if self._launched:
                self._launched(recipe.ready.launched)
        return out


def on_host(given: Arguments, scalars: Scalars) -> tuple[Arguments, Scalars]:
    """Arguments as NumPy's arrays, and scales, which lie in the host's memory too, in alpha. Raises ValueError."""
    if isinstance(given.out, (list, tuple)):
        raise ValueError("out must be an array that may be written")
    given = Arguments(
        *[x if x is None else host_array(x, name, "a") for name, x in zip(given._fields, given, strict=True)]
    )
    for name in ("scale_a", "scale_b") if given.scale_a is not None or given.scale_b is not None else ():
        if (scale := getattr(given, name)) is not None:
            if scale.size != 1:
                raise ValueError(f"{name} has shape {scale.shape}; it is one number")
            given, scalars = in_alpha(given, scalars, name, float(scale.reshape(())))
    return given, scalars


def _matrix(x: Array, index: int) -> Array:
    """One of a batch, which a single matrix or a vector serves as it is."""
    return x if x.ndim < 3 else x[index if len(x) > 1 else 0]
