"""`matmul` of torch tensors on a GPU: on torch's current stream, in its memory, with next to nothing done twice."""

from __future__ import annotations

from typing import Any

from tunesmith.library.arrays._libraries import TorchArrays, check_tensors, no_gradient, view_of_torch
from tunesmith.library.arrays._streams import current_handle, not_ready
from tunesmith.library.arrays._view import ALIGNMENT, selector

from ._call import Arguments, Scalars, checked
from ._calls import Calls, KnownLayout
from ._recipes import Addresses, DirectLaunch


class TorchCalls(Calls):
    """On the tensors' GPU, on torch's current stream."""

    def _seen(self, torch: Any, given: Arguments, scalars: Scalars) -> tuple[Any, Addresses]:
        """What autograd follows is refused here, at every call: whether it does is no part of a layout. Asking a tensor
        is most of what a call costs, so each is asked once, and for no more than this."""
        layouts: list[Any] = []
        at = []
        try:
            for x in given:
                if x is None:
                    layouts.append(None)
                    at.append(0)
                    continue
                if x.requires_grad and torch.is_grad_enabled():
                    raise no_gradient()
                address = x.data_ptr()
                layouts.append((x.shape, x.stride(), x.dtype, x.get_device(), address % ALIGNMENT))
                at.append(address)
            return (tuple(layouts), scalars, _tf32(torch, given.a)), at
        except (AttributeError, TypeError, RuntimeError):
            check_tensors(torch, given._asdict())
            raise

    def _launch(self, torch: Any, known: KnownLayout, recipe: DirectLaunch, given: Arguments, at: Addresses) -> Any:
        out, written = given.out, at[-1]
        if out is None:
            out = torch.empty_like(known.like, memory_format=torch.contiguous_format)
            written = out.data_ptr()
        stream, launched = current_handle(torch)(known.ordinal), recipe.ready.launched
        if not (size := launched.plan.workspace_bytes):
            recipe.enqueue(stream, 0, at, written)
        elif torch.cuda.is_current_stream_capturing():
            # From the graph's own pool: a replay may run beside other work of the stream that it was captured on.
            kept = torch.empty(size, dtype=torch.uint8, device=out.device)
            recipe.enqueue(stream, kept.data_ptr(), at, written, on_zeros=False)
        else:
            recipe.enqueue(stream, known.launcher.workspaces.of(stream, launched.plan), at, written)
        if self._launched:
            self._launched(launched)
        return out

    def _learn(self, torch: Any, key: Any, given: Arguments, scalars: Scalars) -> KnownLayout:
        check_tensors(torch, given._asdict())
        if torch.cuda.is_current_stream_capturing():
            raise not_ready()
        seen = Arguments(*(None if x is None else view_of_torch(x) for x in given))
        call = checked(seen, scalars, _tf32(torch, given.a))
        device, ordinal = given.a.device, given.a.get_device()
        like = torch.empty((), dtype=getattr(torch, call.request.result), device=device).expand(call.shape)
        return self._keep(key, selector(ordinal), call, TorchArrays(torch, device), ordinal=ordinal, like=like)


def _tf32(torch: Any, a: Any) -> bool:
    """Whether torch itself would multiply such tensors in TF32."""
    return a.dtype is torch.float32 and torch.get_float32_matmul_precision() != "highest"
