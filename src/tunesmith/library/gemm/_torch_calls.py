"""`matmul` of torch tensors on a GPU: on torch's current stream, in its memory, with next to nothing done twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

from tunesmith.library.arrays._memory import current_handle, no_gradient, of_torch, selector
from tunesmith.library.launch._launcher import ALIGNMENT, Launched
from tunesmith.library.launch._workspaces import not_ready

from ._epilogue import finished
from ._gpu_call import Arguments, Scalars, call_of, wanted_of
from ._recipes import REMEMBERED, Addresses, Copied, Direct, Empty, Gpu, Recipe, Unfused
from ._request import Told, Wanted

OVER_AN_OPERAND = Copied({"out": False}, "", "out shares memory with an operand")


@dataclass(frozen=True, slots=True)
class _Known:
    """A layout's recipe, and the GPU and result that it is for.

    `like` has the result's shape, type and device, and one element: torch makes a result like it in half of the time
    that it takes to be told these three.
    """

    recipe: Recipe
    gpu: Gpu
    wanted: Wanted
    shape: tuple[int, ...]
    dtype: Any
    device: Any
    ordinal: int
    like: Any


class TorchCalls:
    """Recipes by layout. `gpu_of` opens a GPU by its selector; `told`, if given, hears of every launch."""

    def __init__(
        self, gpu_of: Callable[[str], Gpu], lock: RLock, told: Callable[[Launched], None] | None, users: Told
    ) -> None:
        self._gpu_of, self._lock, self._told, self._users = gpu_of, lock, told, users
        self._known: dict[Any, _Known] = {}

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
                    return self._copied(torch, known, recipe, given, scalars)
                case recipe:
                    return self._followed(torch, known, recipe, given, scalars)

    def clear(self) -> None:
        """Forget everything: what it was made for is closed."""
        self._known.clear()

    def _launch(
        self, torch: Any, known: _Known, recipe: Direct, given: Arguments, scalars: Scalars, at: Addresses
    ) -> Any:
        out = given.out
        if out is None:
            out = torch.empty_like(known.like, memory_format=torch.contiguous_format)
            written = out.data_ptr()
        elif recipe.overwrites(at):
            return self._copied(torch, known, OVER_AN_OPERAND, given, scalars)
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
            recipe.enqueue(stream, known.gpu.workspaces.of(stream, recipe.told.plan), at, written)
        if self._told:
            self._told(recipe.told)
        return out

    def _copied(self, torch: Any, known: _Known, recipe: Copied, given: Arguments, scalars: Scalars) -> Any:
        """The same call on copies, which torch makes on the same stream."""
        reads = {
            name: _copy(torch, _batch(getattr(given, name), known.shape, once=name == recipe.shared), first)
            for name, first in recipe.columns_first.items()
            if name != "out"
        }
        inner = given._replace(**reads)
        if "out" not in recipe.columns_first:
            return self.matmul(torch, inner, scalars)
        fresh = self.matmul(torch, inner._replace(out=_blank(torch, known, recipe.columns_first["out"])), scalars)
        out = _blank(torch, known, columns_first=False) if given.out is None else given.out
        return out.copy_(fresh)

    def _followed(self, torch: Any, known: _Known, recipe: Unfused | Empty, given: Arguments, scalars: Scalars) -> Any:
        """The product by a kernel, or zeros, and the rest of the call by torch."""
        scales = tuple(x for x in (given.scale_a, given.scale_b) if x is not None)
        if isinstance(recipe, Unfused):
            self._users.of_what_follows(recipe.left, recipe.like)
            left = recipe.left
            inner = given._replace(c=None, bias=None, out=None)
            inner = inner if recipe.done.scaled else inner._replace(scale_a=None, scale_b=None)
            product = self.matmul(torch, inner, Scalars(None, scalars.alpha, 0.0, known.wanted.result))
        else:
            left, product = known.wanted, _blank(torch, known, columns_first=False).zero_()
        result = finished(torch, product, left, scalars.beta, given.c, given.bias, scales)
        return result.to(known.dtype) if given.out is None else given.out.copy_(result)

    def _learn(self, torch: Any, key: Any, given: Arguments, scalars: Scalars) -> _Known:
        _check_tensors(torch, given)
        if torch.cuda.is_current_stream_capturing():
            raise not_ready()
        seen = Arguments(*(None if x is None else of_torch(x) for x in given))
        shape, wanted = wanted_of(seen, scalars, _tf32(torch, given.a))
        dtype, device, ordinal = getattr(torch, wanted.result), given.a.device, given.a.get_device()
        if given.out is None:
            seen = seen._replace(out=of_torch(torch.empty(shape, dtype=dtype, device=device)))
        gpu = self._gpu_of(selector(ordinal))
        recipe = gpu.recipe(call_of(seen, scalars, wanted))
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        like = torch.empty((), dtype=dtype, device=device).expand(shape)
        known = self._known[key] = _Known(recipe, gpu, wanted, shape, dtype, device, ordinal, like)
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


def _batch(x: Any, shape: tuple[int, ...], once: bool) -> Any:
    """A view as one matrix of the batch, or else as one for each matrix of the result; a bias as it is."""
    if x.ndim == 1 or (once and x.ndim == 2):
        return x
    return x[:1] if once else x.expand(*shape[:-2], *x.shape[-2:])


def _copy(torch: Any, x: Any, columns_first: bool) -> Any:
    if columns_first:
        return x.mT.clone(memory_format=torch.contiguous_format).mT
    return x.clone(memory_format=torch.contiguous_format)


def _blank(torch: Any, known: _Known, columns_first: bool) -> Any:
    if not columns_first:
        return torch.empty(known.shape, dtype=known.dtype, device=known.device)
    *batch, m, n = known.shape
    return torch.empty((*batch, n, m), dtype=known.dtype, device=known.device).mT


def _check_tensors(torch: Any, given: Arguments) -> None:
    """Raises TypeError for what is no dense tensor, ValueError where one lies elsewhere."""
    for name, x in given._asdict().items():
        if x is None:
            continue
        if not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
            said = f"a tensor of layout {x.layout}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
            raise TypeError(f"{name} is {said}; a is a tensor on a GPU, and the others are dense tensors there too")
        if x.device != given.a.device:
            raise ValueError(f"{name} lies on {x.device}, a on {given.a.device}: move them to one GPU first")
