"""`matmul` of other libraries' arrays on a GPU, by `__cuda_array_interface__` or DLPack, on a stream that is given."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from tunesmith.devices.cuda import CudaDevice, Mark
from tunesmith.library.arrays._dlpack import imported
from tunesmith.library.arrays._memory import Foreign, foreign, stream_of
from tunesmith.library.launch._launcher import ALIGNMENT, Launched
from tunesmith.library.launch._workspaces import not_ready
from tunesmith.records import UserError

from ._gpu_call import Arguments, Scalars, call_of, wanted_of
from ._recipes import REMEMBERED, Addresses, Copied, Direct, Gpu, Recipe, Unfused, addresses_of
from ._request import Wanted

DEFAULT_STREAM = 1
"""CUDA's default stream by its name in the driver."""


class ForeignCalls:
    """Recipes by layout. Nothing is copied and nothing follows a kernel: there is no library here to do it with."""

    def __init__(self, gpu_of: Callable[[str], Gpu], lock: RLock, told: Callable[[Launched], None] | None) -> None:
        self._gpu_of, self._lock, self._told = gpu_of, lock, told
        self._known: dict[Any, Recipe] = {}

    def matmul(self, given: Arguments, scalars: Scalars, stream: Any) -> Any:
        """activation(alpha scale_a scale_b a b + bias) + beta c into `out`, which is also what is returned."""
        if given.out is None:
            raise ValueError("give out: arrays like a cannot be made here")
        handle = _handle(given, stream)
        seen = Arguments(*(None if x is None else _seen(x, name, handle) for name, x in given._asdict().items()))
        shape, wanted = wanted_of(seen, scalars)
        if 0 in shape:
            return given.out
        with self._lock:
            place = _common_place(seen)
            gpu, at = self._gpu_of(place), addresses_of(seen)
            direct = _direct(self._recipe(gpu, (place, scalars), seen, wanted, handle), at)
            _follow(gpu.device, seen, handle)
            direct.enqueue(handle, gpu.workspaces.of(handle, direct.told.plan), at, seen.out.address)
            if self._told:
                self._told(direct.told)
        return given.out

    def clear(self) -> None:
        """Forget everything: what it was made for is closed."""
        self._known.clear()

    def _recipe(self, gpu: Gpu, said: tuple[str, Scalars], seen: Arguments, wanted: Wanted, handle: int) -> Recipe:
        layouts = (None if x is None else (x.shape, x.strides, x.dtype, x.address % ALIGNMENT) for x in seen)
        key = (*said, *layouts)
        recipe = self._known.get(key)
        if recipe is None:
            with gpu.device.on(handle):
                if gpu.device.capturing():
                    raise not_ready()
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            recipe = self._known[key] = gpu.recipe(call_of(seen, said[1], wanted))
        return recipe


def _handle(given: Arguments, stream: Any) -> int:
    """The stream that was given; else the first that an array says it was written on, else CUDA's default stream."""
    if asked := stream_of(stream):
        return asked.handle
    interfaces = (getattr(x, "__cuda_array_interface__", None) or {} for x in (given.out, *given) if x is not None)
    return next((int(said) for one in interfaces if (said := one.get("stream"))), DEFAULT_STREAM)


def _seen(x: Any, name: str, handle: int) -> Foreign:
    if hasattr(x, "__cuda_array_interface__"):
        return foreign(x, name)
    if hasattr(x, "__dlpack__"):
        return imported(x, name, handle)
    raise TypeError(f"{name} is a {type(x).__name__}, a lies on a GPU: give an array that lies there too")


def _common_place(seen: Arguments) -> str:
    places: list[str] = sorted({x.selector for x in seen if x is not None and x.selector})
    if len(places) > 1:
        raise ValueError(f"the arrays lie on {' and '.join(places)}: move them to one GPU first")
    return places[0]


def _direct(recipe: Recipe, at: Addresses) -> Direct:
    """Raises ValueError or UserError for what only a library with operations of its own could do."""
    match recipe:
        case Direct():
            if recipe.overwrites(at):
                raise ValueError("out shares memory with an operand: give another out")
            return recipe
        case Copied():
            names = " and ".join(recipe.columns_first)
            raise ValueError(f"{names} would have to be copied, since {recipe.why}: give contiguous copies")
        case Unfused():
            remedy = f"tune {recipe.like.name}, give torch tensors, or leave it out and do it afterwards"
            raise UserError("matmul", f"no logic is for {recipe.left.said} after the product", remedy)
        case _:
            raise ValueError("a has no columns and b no rows: there is nothing to add up")


def _follow(device: CudaDevice, seen: Arguments, handle: int) -> None:
    """Let the stream wait for others on which arrays say that they were written."""
    others = {x.written_on for x in seen if x is not None and x.written_on} - {handle}
    for other in sorted(others):
        with device.on(other):
            mark = Mark()
            device.record(mark)
        with device.on(handle):
            device.follow(mark)
