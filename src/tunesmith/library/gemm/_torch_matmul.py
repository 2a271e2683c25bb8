"""`matmul` of torch tensors on a GPU: on torch's current stream, in torch's memory, with as little host work per call
as possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tunesmith.kernels import VENDOR
from tunesmith.library.arrays._libraries import TorchArrays, check_tensors, no_gradient, view_of_torch
from tunesmith.library.arrays._streams import current_handle, not_ready
from tunesmith.library.arrays._view import ALIGNMENT, selector

from ._array_matmul import ArrayMatmul, LayoutRecipe, warn_once
from ._checked_call import Arguments, Scalars, checked
from ._native_products import NativeProducts, Repeat, is_plain_product, native_products
from ._recipes import Addresses, DirectLaunch

REFUSALS = AttributeError, RuntimeError, TypeError, ValueError
"""What torch's operator raises for a call that it does not make."""


class TorchMatmul(ArrayMatmul):
    """`matmul` on the tensors' GPU, on torch's current stream.

    `repeat(a, b, out, scale_a, scale_b)` makes a plain product again, or returns None if it does not know it. It is
    None without the compiled distribution, before the first product, and where a caller wants to be told of launches.
    """

    def __init__(self, *shared: Any) -> None:
        super().__init__(*shared)
        self.repeat: Repeat | None = None
        self._native: NativeProducts | None = None
        self._may_learn = True

    def clear(self) -> None:
        super().clear()
        if self._native:
            self._native.clear()

    def _layout_key(self, torch: Any, arguments: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        """As in `ArrayMatmul`. Tensors that require a gradient are refused here, at every call, since that is not part
        of a layout. Reading attributes of tensors is most of a call's cost, so each is read once."""
        layouts: list[Any] = []
        addresses = []
        try:
            for x in arguments:
                if x is None:
                    layouts.append(None)
                    addresses.append(0)
                    continue
                if x.requires_grad and torch.is_grad_enabled():
                    raise no_gradient()
                address = x.data_ptr()
                layouts.append((x.shape, x.stride(), x.dtype, x.get_device(), address % ALIGNMENT))
                addresses.append(address)
            return (tuple(layouts), scalars, _torchs_settings(torch, arguments.a)), addresses
        except (AttributeError, TypeError, RuntimeError):
            check_tensors(torch, arguments._asdict())
            raise

    def _launch(
        self, torch: Any, layout: LayoutRecipe, recipe: DirectLaunch, arguments: Arguments, addresses: Addresses
    ) -> Any:
        out, out_address = arguments.out, addresses[-1]
        if out is None:
            out = torch.empty_like(layout.like, memory_format=torch.contiguous_format)
            out_address = out.data_ptr()
        if layout.by_torch and _by_torch(torch, arguments, out):
            if self._launched:
                self._launched(recipe.ready.launched)
            elif self._may_learn and layout.is_plain and (native := self._begun_native(torch, layout)):
                native.learn_function(_scaled_by_torch(torch, out.dtype), recipe, arguments)
            return out
        stream, launched, workspace = current_handle(torch)(layout.ordinal), recipe.ready.launched, 0
        if not (size := launched.plan.workspace_bytes):
            recipe.enqueue(stream, workspace, addresses, out_address)
        elif torch.cuda.is_current_stream_capturing():
            # The workspace comes from the graph's own pool: a replay may run beside other work of the stream that the
            # graph was captured on.
            of_graph = torch.empty(size, dtype=torch.uint8, device=out.device)
            recipe.enqueue(stream, of_graph.data_ptr(), addresses, out_address, on_zeros=False)
        else:
            workspace = layout.launcher.workspaces.of(stream, launched.plan)
            recipe.enqueue(stream, workspace, addresses, out_address)
        if self._launched:
            self._launched(launched)
        elif self._may_learn and layout.is_plain and (native := self._begun_native(torch, layout)):
            self._learn(native, torch, layout, recipe, arguments, workspace)
        return out

    def _begun_native(self, torch: Any, layout: LayoutRecipe) -> NativeProducts | None:
        """The compiled products, created at the first call; None without the distribution."""
        if self._native is None:
            self._may_learn = False  # also if a warning is an error
            self._native = native_products(torch, partial(warn_once, layout.launcher))
            self._may_learn = self._native is not None
            self.repeat = self._native.repeat if self._native else None
        return self._native

    def _learn(
        self,
        native: NativeProducts,
        torch: Any,
        layout: LayoutRecipe,
        recipe: DirectLaunch,
        arguments: Arguments,
        workspace: int,
    ) -> None:
        """Let compiled code repeat this product from now on."""
        if not torch.cuda.is_current_stream_capturing():
            with layout.launcher.at_home():
                native.learn(recipe, arguments, layout.like, workspace)
            if workspace:
                layout.launcher.workspaces.replaced = native.clear

    def _find_recipe(self, torch: Any, key: Any, arguments: Arguments, scalars: Scalars) -> LayoutRecipe:
        check_tensors(torch, arguments._asdict())
        if torch.cuda.is_current_stream_capturing():
            raise not_ready()
        views = Arguments(*(None if x is None else view_of_torch(x) for x in arguments))
        call = checked(views, scalars, *_torchs_settings(torch, arguments.a))
        device, ordinal = arguments.a.device, arguments.a.get_device()
        like = torch.empty((), dtype=getattr(torch, call.request.result), device=device).expand(call.shape)
        layout = self._make_recipe(key, selector(ordinal), call, TorchArrays(torch, device), ordinal=ordinal, like=like)
        by_torch = _torch_makes(torch, layout, arguments, scalars)
        is_plain = isinstance(layout.recipe, DirectLaunch) and is_plain_product(
            layout.recipe, layout.request, arguments
        )
        return self._remember(key, replace(layout, by_torch=by_torch, is_plain=is_plain))


def _torch_makes(torch: Any, layout: LayoutRecipe, arguments: Arguments, scalars: Scalars) -> bool:
    """Whether torch's own operator makes this product of float8 operands with scales: the vendor's library was chosen
    for it, and torch takes these arguments, which is tried. Torch's way there costs the host less than ours."""
    recipe, (_, _, c, bias, scale_a, scale_b, out) = layout.recipe, arguments
    if not isinstance(recipe, DirectLaunch) or recipe.ready.launched.choice.solution.kernel != VENDOR:
        return False
    if scale_a is None or scale_b is None or not (out is None or out.is_contiguous()):
        return False
    if c is not None or bias is not None or scalars.activation not in (None, "none") or scalars.alpha != 1:
        return False
    return _by_torch(torch, arguments, torch.empty_like(layout.like, memory_format=torch.contiguous_format))


def _by_torch(torch: Any, arguments: Arguments, out: Any) -> bool:
    """Make a product of float8 operands with scales by torch's operator. False if torch refuses it, or if a graph is
    being captured: a graph has a workspace of its own, which torch's operator may not have."""
    if torch.cuda.is_current_stream_capturing():
        return False
    try:
        torch._scaled_mm(*arguments[:2], arguments.scale_a, arguments.scale_b, out_dtype=out.dtype, out=out)
    except REFUSALS:
        return False
    return True


def _scaled_by_torch(torch: Any, dtype: Any) -> Callable[..., Any]:
    """Torch's operator as compiled code calls it, with results of this data type. It returns None for a call that torch
    refuses."""
    multiply = torch._scaled_mm

    def multiplied(a: Any, b: Any, out: Any, scale_a: Any, scale_b: Any) -> Any:
        try:
            return multiply(a, b, scale_a, scale_b, out_dtype=dtype, out=out)
        except REFUSALS:
            return None

    return multiplied


def _torchs_settings(torch: Any, a: Any) -> tuple[bool, bool]:
    """Whether torch itself would multiply such tensors in TF32, and whether its cuBLAS may round parts of sums."""
    if a.dtype is torch.float32:
        return torch.get_float32_matmul_precision() != "highest", False
    return False, loose_sums(torch, a.dtype)


def loose_sums(torch: Any, dtype: Any) -> bool:
    """Whether torch lets cuBLAS round parts of sums of this data type: `allow_bf16_reduced_precision_reduction` and
    `allow_fp16_reduced_precision_reduction` of `torch.backends.cuda.matmul`, without the way over that object."""
    if dtype is torch.bfloat16:
        found = torch._C._get_cublas_allow_bf16_reduced_precision_reduction()
    elif dtype is torch.float16:
        found = torch._C._get_cublas_allow_fp16_reduced_precision_reduction()
    else:
        return False
    # Newer releases answer with a pair, whose second part is about split K.
    return bool(found[0] if isinstance(found, tuple) else found)
