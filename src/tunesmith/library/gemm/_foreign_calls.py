"""`matmul` of other libraries' arrays on a GPU, by `__cuda_array_interface__` or DLPack, on a stream that is given."""

from __future__ import annotations

from typing import Any, NoReturn

from tunesmith.library.arrays._libraries import common_gpu, view_on_gpu
from tunesmith.library.arrays._streams import follow, handle_for, not_ready
from tunesmith.records import UserError

from ._call import Arguments, Scalars, checked
from ._calls import OVER_AN_OPERAND, Calls, KnownLayout
from ._recipes import Addresses, Copied, DirectLaunch, Empty, Unfused


class ForeignCalls(Calls):
    """Nothing is copied and nothing follows a kernel: there is no library here to do it with. The stream is in the
    place of torch, and views are in the place of arrays."""

    def matmul(self, torch: Any, given: Arguments, scalars: Scalars) -> Any:
        if given.out is None:
            raise ValueError("give out: arrays like a cannot be made here")
        handle = handle_for((given.out, *given), torch)
        views = (None if x is None else view_on_gpu(x, name, handle, "a") for name, x in given._asdict().items())
        seen = Arguments(*views)
        if 0 in seen.out.shape:
            checked(seen, scalars)
        else:
            super().matmul(handle, seen, scalars)
        return given.out

    def _seen(self, torch: Any, given: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        layouts = (None if x is None else (x.selector, x.layout) for x in given)
        return (tuple(layouts), scalars), tuple(x.address if x else 0 for x in given)

    def _learn(self, torch: Any, key: Any, given: Arguments, scalars: Scalars) -> KnownLayout:
        call, selector = checked(given, scalars), common_gpu(x for x in given if x)
        gpu = self._launcher_of(selector).gpu
        with gpu.on(torch):
            if gpu.capturing():
                raise not_ready()
        return self._keep(key, selector, call)

    def _launch(self, torch: Any, known: KnownLayout, recipe: DirectLaunch, given: Arguments, at: Addresses) -> None:
        launcher, launched = known.launcher, recipe.ready.launched
        follow(launcher.gpu, (x for x in given if x), torch)
        recipe.enqueue(torch, launcher.workspaces.of(torch, launched.plan), at, at[-1])
        if self._launched:
            self._launched(launched)

    def _copied(self, known: KnownLayout, recipe: Copied, given: Arguments, scalars: Scalars) -> NoReturn:
        if recipe is OVER_AN_OPERAND:
            raise ValueError("out shares memory with an operand: give another out")
        names = " and ".join(recipe.axes)
        raise ValueError(f"{names} would have to be copied, since {recipe.why}: give contiguous copies")

    def _followed(self, known: KnownLayout, recipe: Unfused | Empty, given: Arguments, scalars: Scalars) -> NoReturn:
        if isinstance(recipe, Empty):
            raise ValueError("a has no columns and b no rows: there is nothing to add up")
        remedy = f"tune {recipe.like.name}, give torch tensors, or leave it out and do it afterwards"
        raise UserError("matmul", f"no logic is for {recipe.left.epilogue} after the product", remedy)
