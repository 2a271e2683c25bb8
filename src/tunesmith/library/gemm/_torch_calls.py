"""`matmul` of torch tensors on a GPU: on torch's current stream, in its memory, with next to nothing done twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tunesmith.library.arrays._libraries import TorchArrays, no_gradient, view_of_torch
from tunesmith.library.arrays._streams import current_handle, not_ready
from tunesmith.library.arrays._view import selector
from tunesmith.library.launch._launcher import ALIGNMENT

from ._call import Arguments, Call, Scalars, request_of
from ._calls import OVER_AN_OPERAND, Calls, Known
from ._epilogue import finished_by_torch
from ._recipes import REMEMBERED, Addresses, Copied, Direct, recipe
from ._request import GemmRequest


@dataclass(frozen=True, slots=True)
class _Known(Known):
    """`like` has the result's shape, type and device, and one element: torch makes a result like it in half of the time
    that it takes to be told these three."""

    device: Any
    ordinal: int
    like: Any


class TorchCalls(Calls):
    """On the tensors' GPU, on torch's current stream."""

    def matmul(self, torch: Any, given: Arguments, scalars: Scalars) -> Any:
        """activation(alpha scale_a scale_b a b + bias) + beta c, into `out` if there is one."""
        try:
            layouts, at = _seen(torch, given)
            key = layouts, scalars, _tf32(torch, given.a)
        except (AttributeError, TypeError, RuntimeError):
            _check_tensors(torch, given)
            raise
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = self._learn(torch, key, given, scalars)
            match known.recipe:
                case Direct() as recipe:
                    return self._launch(torch, known, recipe, given, scalars, at)
                case Copied() as recipe:
                    return self._copied(known, recipe, given, scalars)
                case recipe:
                    return self._followed(known, recipe, given, scalars)

    def _launch(
        self, torch: Any, known: _Known, recipe: Direct, given: Arguments, scalars: Scalars, at: Addresses
    ) -> Any:
        out = given.out
        if out is None:
            out = torch.empty_like(known.like, memory_format=torch.contiguous_format)
            written = out.data_ptr()
        elif recipe.overwrites(at):
            return self._copied(known, OVER_AN_OPERAND, given, scalars)
        else:
            written = at[-1]
        stream, size = current_handle(torch)(known.ordinal), recipe.workspace_bytes
        if not size:
            recipe.enqueue(stream, 0, at, written)
        elif torch.cuda.is_current_stream_capturing():
            # From the graph's own pool: a replay may run beside other work of the stream that it was captured on.
            kept = torch.empty(size, dtype=torch.uint8, device=known.device)
            recipe.enqueue(stream, kept.data_ptr(), at, written, on_zeros=False)
        else:
            recipe.enqueue(stream, known.launcher.workspaces.of(stream, recipe.launched.plan), at, written)
        if self._launched:
            self._launched(recipe.launched)
        return out

    def _again(self, known: Known, given: Arguments, scalars: Scalars) -> Any:
        assert isinstance(known.arrays, TorchArrays)
        return self.matmul(known.arrays.torch, given, scalars)

    def _finished(self, known: Known, product: Any, left: GemmRequest, beta: float, given: Arguments) -> Any:
        assert isinstance(known.arrays, TorchArrays)
        return finished_by_torch(known.arrays.torch, product, left, beta, given)

    def _learn(self, torch: Any, key: Any, given: Arguments, scalars: Scalars) -> _Known:
        _check_tensors(torch, given)
        if torch.cuda.is_current_stream_capturing():
            raise not_ready()
        seen = Arguments(*(None if x is None else view_of_torch(x) for x in given))
        shape, request = request_of(seen, scalars, _tf32(torch, given.a))
        device, ordinal = given.a.device, given.a.get_device()
        arrays = TorchArrays(torch, device)
        like = torch.empty((), dtype=getattr(torch, request.result), device=device).expand(shape)
        if given.out is None:
            seen = seen._replace(out=view_of_torch(torch.empty_like(like, memory_format=torch.contiguous_format)))
        launcher = self._launcher_of(selector(ordinal))
        found = recipe(launcher, Call.of(seen, scalars, request))
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        known = self._known[key] = _Known(found, launcher, arrays, request, shape, device, ordinal, like)
        return known


def _seen(torch: Any, given: Arguments) -> tuple[tuple[Any, ...], Addresses]:
    """All of the tensors that a recipe depends on, and their addresses, of which it depends on the alignment alone.

    What autograd follows is refused here, at every call: whether it does is no part of a layout. Asking a tensor is
    most of what a call costs, so each is asked once, and for no more than this.
    """
    layouts: list[Any] = []
    at = []
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
    return tuple(layouts), at


def _tf32(torch: Any, a: Any) -> bool:
    """Whether torch itself would multiply such tensors in TF32."""
    return a.dtype is torch.float32 and torch.get_float32_matmul_precision() != "highest"


def _check_tensors(torch: Any, given: Arguments) -> None:
    """Raises TypeError for what is no dense tensor, ValueError where one lies elsewhere."""
    for name, x in given._asdict().items():
        if x is None:
            continue
        if not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
            what = f"a tensor of layout {x.layout}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
            raise TypeError(f"{name} is {what}; a is a tensor on a GPU, and the others are dense tensors there too")
        if x.device != given.a.device:
            raise ValueError(f"{name} lies on {x.device}, a on {given.a.device}: move them to one GPU first")
