"""`matmul` for every kind of arrays. `Library` imports it at its first product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tunesmith.library.arrays._libraries import as_tensor, dtype_name, torch_and_gpu

from ._checked_call import Arguments, Scalars, normalized
from ._foreign_matmul import ForeignMatmul
from ._host_matmul import HostMatmul, on_host
from ._torch_matmul import TorchMatmul


class Products:
    """A library's products, with what is remembered of them: of arrays on the host, of torch tensors on a GPU, and of
    other libraries' arrays there. All three get the arguments of `ArrayMatmul`."""

    def __init__(self, *shared: Any) -> None:
        self.host, self.torch, self.foreign = HostMatmul(*shared), TorchMatmul(*shared), ForeignMatmul(*shared)

    def matmul(
        self, arguments: Sequence[Any], residual: Any, numbers: tuple[str | None, float, float], dtype: Any, stream: Any
    ) -> Any:
        """As `Library.matmul`. `arguments` are the arrays of `Arguments`, `numbers` are activation, alpha and beta."""
        a, *_, out = arguments
        torch, is_on_gpu = torch_and_gpu(a, "a", stream)
        scalars = Scalars(*numbers, "" if dtype is None else dtype_name(dtype))
        call = normalized(Arguments(*arguments), scalars, residual)
        if is_on_gpu:
            return self.foreign.matmul(stream, *call) if torch is None else self.torch.matmul(torch, *call)
        result = self.host.matmul(None, *on_host(*call))
        if out is not None:
            return out
        return result if torch is None else as_tensor(torch, result)

    def clear(self) -> None:
        for calls in (self.host, self.torch, self.foreign):
            calls.clear()
