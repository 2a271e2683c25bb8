"""`matmul` of other libraries' arrays on a GPU, by `__cuda_array_interface__` or DLPack, on a stream that is given."""

from __future__ import annotations

from typing import Any

from tunesmith.library.arrays._libraries import NumPyArrays, common_gpu, view_on_gpu
from tunesmith.library.arrays._streams import follow, handle_for, not_ready
from tunesmith.library.launch._launcher import ALIGNMENT
from tunesmith.records import UserError

from ._call import Arguments, Call, Scalars, checked
from ._calls import Calls, Known
from ._recipes import Addresses, Copied, Direct, Recipe, Unfused


class ForeignCalls(Calls):
    """Nothing is copied and nothing follows a kernel: there is no library here to do it with. `stream` is in the place
    of torch."""

    def matmul(self, stream: Any, given: Arguments, scalars: Scalars) -> Any:
        if given.out is None:
            raise ValueError("give out: arrays like a cannot be made here")
        handle = handle_for((given.out, *given), stream)
        views = (None if x is None else view_on_gpu(x, name, handle, "a") for name, x in given._asdict().items())
        seen = Arguments(*views)
        call = checked(seen, scalars)
        if 0 in call.shape:
            return given.out
        with self._lock:
            there = [view for view in seen if view is not None]
            known, at = (
                self._found(common_gpu(there), call, seen, scalars, handle),
                tuple(x.address if x else 0 for x in seen),
            )
            direct, launcher = _direct(known.recipe, at), known.launcher
            follow(launcher.gpu, there, handle)
            direct.enqueue(handle, launcher.workspaces.of(handle, direct.launched.plan), at, seen.out.address)
            if self._launched:
                self._launched(direct.launched)
        return given.out

    def _found(self, selector: str, call: Call, seen: Arguments, scalars: Scalars, handle: int) -> Known:
        layouts = (None if x is None else (x.shape, x.strides, x.dtype, x.address % ALIGNMENT) for x in seen)
        key = selector, scalars, *layouts
        if key not in self._known:
            gpu = self._launcher_of(selector).gpu
            with gpu.on(handle):
                if gpu.capturing():
                    raise not_ready()
            self._keep(key, selector, call, lambda launcher: NumPyArrays(launcher.device.alignment))
        return self._known[key]


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
