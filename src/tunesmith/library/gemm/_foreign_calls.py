"""`matmul` of other libraries' arrays on a GPU, by `__cuda_array_interface__` or DLPack, on a stream that is given."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from tunesmith.library.arrays._libraries import common_gpu, view_on_gpu
from tunesmith.library.arrays._streams import follow, handle_for, not_ready
from tunesmith.library.launch._launcher import ALIGNMENT, Launched, Launcher
from tunesmith.records import UserError

from ._call import Arguments, Call, Scalars, request_of
from ._recipes import REMEMBERED, Addresses, Copied, Direct, Recipe, Unfused, recipe
from ._request import GemmRequest


class ForeignCalls:
    """Recipes by layout. Nothing is copied and nothing follows a kernel: there is no library here to do it with."""

    def __init__(
        self, launcher_of: Callable[[str], Launcher], lock: RLock, launched: Callable[[Launched], None] | None
    ) -> None:
        self._launcher_of, self._lock, self._launched = launcher_of, lock, launched
        self._known: dict[Any, Recipe] = {}

    def matmul(self, given: Arguments, scalars: Scalars, stream: Any) -> Any:
        """activation(alpha scale_a scale_b a b + bias) + beta c into `out`, which is also what is returned."""
        if given.out is None:
            raise ValueError("give out: arrays like a cannot be made here")
        handle = handle_for((given.out, *given), stream)
        views = (None if x is None else view_on_gpu(x, name, handle, "a") for name, x in given._asdict().items())
        seen = Arguments(*views)
        shape, request = request_of(seen, scalars)
        if 0 in shape:
            return given.out
        with self._lock:
            there = [view for view in seen if view is not None]
            selector = common_gpu(there)
            launcher, at = self._launcher_of(selector), tuple(0 if view is None else view.address for view in seen)
            direct = _direct(self._recipe(launcher, (selector, scalars), seen, request, handle), at)
            follow(launcher.gpu, there, handle)
            direct.enqueue(handle, launcher.workspaces.of(handle, direct.launched.plan), at, seen.out.address)
            if self._launched:
                self._launched(direct.launched)
        return given.out

    def clear(self) -> None:
        """Forget everything: what it was made for is closed."""
        self._known.clear()

    def _recipe(
        self, launcher: Launcher, asked: tuple[str, Scalars], seen: Arguments, request: GemmRequest, handle: int
    ) -> Recipe:
        key = (*asked, *(None if x is None else (x.shape, x.strides, x.dtype, x.address % ALIGNMENT) for x in seen))
        found = self._known.get(key)
        if found is None:
            with launcher.gpu.on(handle):
                if launcher.gpu.capturing():
                    raise not_ready()
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[key] = recipe(launcher, Call.of(seen, asked[1], request))
        return found


def _direct(recipe: Recipe, at: Addresses) -> Direct:
    """Raises ValueError or UserError for what only a library with operations of its own could do."""
    match recipe:
        case Direct():
            if recipe.overwrites(at):
                raise ValueError("out shares memory with an operand: give another out")
            return recipe
        case Copied():
            names = " and ".join(recipe.axes)
            raise ValueError(f"{names} would have to be copied, since {recipe.why}: give contiguous copies")
        case Unfused():
            remedy = f"tune {recipe.like.name}, give torch tensors, or leave it out and do it afterwards"
            raise UserError("matmul", f"no logic is for {recipe.left.epilogue} after the product", remedy)
        case _:
            raise ValueError("a has no columns and b no rows: there is nothing to add up")
