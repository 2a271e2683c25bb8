"""`matmul` of other libraries' arrays on a GPU, by `__cuda_array_interface__` or DLPack, on the caller's stream."""

from __future__ import annotations

from typing import Any, NoReturn

from tunesmith.library.arrays._libraries import common_gpu, view_on_gpu
from tunesmith.library.arrays._streams import follow, handle_for, not_ready
from tunesmith.records import UserError

from ._array_matmul import OVER_AN_OPERAND, ArrayMatmul, LayoutRecipe
from ._checked_call import Arguments, Scalars, checked
from ._recipes import Addresses, Copied, DirectLaunch, Empty, Unfused


class ForeignMatmul(ArrayMatmul):
    """`matmul` without copies and without steps after the kernel, since no library of arrays is there to do them.

    The argument `torch` of the methods is the stream here (in `matmul` as the caller gave it, else its handle), and the
    arguments of all methods but `matmul` are views.
    """

    def matmul(self, torch: Any, arguments: Arguments, scalars: Scalars) -> Any:
        if arguments.out is None:
            raise ValueError("give out: arrays like a cannot be made here")
        handle = handle_for((arguments.out, *arguments), torch)
        views = (None if x is None else view_on_gpu(x, name, handle, "a") for name, x in arguments._asdict().items())
        viewed = Arguments(*views)
        if 0 in viewed.out.shape:
            checked(viewed, scalars)
        else:
            super().matmul(handle, viewed, scalars)
        return arguments.out

    def _layout_key(self, torch: Any, arguments: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        layouts = (None if x is None else (x.selector, x.layout) for x in arguments)
        return (tuple(layouts), scalars), tuple(x.address if x else 0 for x in arguments)

    def _find_recipe(self, torch: Any, key: Any, arguments: Arguments, scalars: Scalars) -> LayoutRecipe:
        call, selector = checked(arguments, scalars), common_gpu(x for x in arguments if x)
        gpu = self._launcher_of(selector).gpu
        with gpu.on(torch):
            if gpu.capturing():
                raise not_ready()
        return self._make_recipe(key, selector, call)

    def _launch(
        self, torch: Any, layout: LayoutRecipe, recipe: DirectLaunch, arguments: Arguments, addresses: Addresses
    ) -> None:
        launcher, launched = layout.launcher, recipe.ready.launched
        follow(launcher.gpu, (x for x in arguments if x), torch)
        recipe.enqueue(torch, launcher.workspaces.of(torch, launched.plan), addresses, addresses[-1])
        if self._launched:
            self._launched(launched)

    def _on_copies(self, layout: LayoutRecipe, recipe: Copied, arguments: Arguments, scalars: Scalars) -> NoReturn:
        if recipe is OVER_AN_OPERAND:
            raise ValueError("out shares memory with an operand: give another out")
        names = " and ".join(recipe.axes)
        raise ValueError(f"{names} would have to be copied, since {recipe.why}: give contiguous copies")

    def _in_steps(
        self, layout: LayoutRecipe, recipe: Unfused | Empty, arguments: Arguments, scalars: Scalars
    ) -> NoReturn:
        if isinstance(recipe, Empty):
            raise ValueError("a has no columns and b no rows: there is nothing to add up")
        remedy = f"tune {recipe.fused_type.name}, give torch tensors, or leave it out and do it afterwards"
        raise UserError("matmul", f"no logic is for {recipe.remaining.epilogue} after the product", remedy)
