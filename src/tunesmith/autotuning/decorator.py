"""`tunesmith.autotune`, in place of `triton.autotune`, and `patch_triton`, which puts it there for a whole program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tunesmith.records import UserError, Value

from .autotuned_kernel import AutotunedKernel, AutotuneSettings
from .callables import callers_location
from .tuning_key import Bucket, Pruning, bucket_of

if TYPE_CHECKING:
    from .call_reference import CallReference

__all__ = ["AutotunedKernel", "TritonPatch", "autotune", "patch_triton"]

AS_LONG_AS_TRITON: Mapping[str, Value] = {"WarmUpSeconds": 0.025, "SamplingSeconds": 0.1}
"""At most as long as `triton.testing.do_bench` measures a configuration by default: 25 ms and 100 ms. Sampling ends
earlier if the time is known, and the finalists are measured again side by side."""


def autotune(
    configs: Iterable[Any],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    *,
    bucket: Bucket | str | None = None,
    reference: CallReference | None = None,
    tolerance: float = 1.0,
    settings: Mapping[str, Value] | None = None,
    quiet: bool = False,
) -> Callable[[Any], AutotunedKernel]:
    """A decorator that chooses among `configs` for each value of the `key` arguments, as `triton.autotune` does.

    The arguments up to `cache_results` are those of `triton.autotune`. A choice is kept in the user's cache, and later
    processes use it; only configurations that were not measured before are measured. They run in processes of their
    own on copies of the call's tensors, so a configuration that fails, hangs or crashes is recorded and not chosen, and
    the call's own tensors do not change. So `restore_value` has nothing to do, and hooks of the decorator, `warmup`,
    `rep`, `use_cuda_graph` and `do_bench` are not used; a warning says so. The arrays of `reset_to_zero` begin with
    zeros where they are measured.

    All configurations must agree with the first that runs, or with `reference`: a function of a mapping of the call's
    arguments, which changes the tensors as the kernel would, or returns them by name. `tolerance` widens the bound.
    `bucket` is a function of a number in the key, or "power_of_two": numbers with the same bucket share a choice.
    `settings` are GlobalParameters of a tuning file: `TimeoutSeconds` limits each launch, and `SamplingSeconds` the
    time that a configuration is measured, which is at most that of `triton.autotune` by default.

    Raises UserError with the line of the program for what cannot be tuned.
    """
    location, listed = callers_location(), list(configs or ())
    unused = {
        "pre_hook": pre_hook,
        "post_hook": post_hook,
        "warmup": warmup,
        "rep": rep,
        "use_cuda_graph": use_cuda_graph,
        "do_bench": do_bench,
        "the pre_hook of a configuration": any(config.pre_hook for config in listed),
    }
    if ignored := [name for name, value in unused.items() if value]:
        what = f"{location}: tunesmith measures in processes of its own and does not use {', '.join(ignored)} there"
        warnings.warn(what, stacklevel=2)
    described = AutotuneSettings(
        configs=listed or [_default_config()],
        key=tuple(key),
        pruning=Pruning.of(prune_configs_by),
        reset_to_zero=tuple(reset_to_zero or ()),
        restore_value=tuple(restore_value or ()),
        bucket=bucket_of(bucket, location),
        reference=reference,
        tolerance=tolerance,
        settings={**AS_LONG_AS_TRITON, **(settings or {})},
        quiet=quiet,
        location=location,
    )
    return lambda fn: AutotunedKernel(fn, described)


def _default_config() -> Any:
    import triton

    return triton.Config({}, num_warps=4, num_stages=3, num_ctas=1)


class TritonPatch:
    """`triton.autotune` replaced by `tunesmith.autotune`, until `undo` or the end of a `with` block."""

    def __init__(self) -> None:
        import triton

        modules = (triton, triton.runtime, triton.runtime.autotuner)
        self._replaced = [(module, module.autotune) for module in modules]
        for module in modules:
            module.autotune = autotune

    def undo(self) -> None:
        """Put Triton's own back."""
        for module, function in self._replaced:
            module.autotune = function

    def __enter__(self) -> TritonPatch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()


def patch_triton() -> TritonPatch:
    """Replace `triton.autotune` by `tunesmith.autotune`, for functions that are decorated from now on.

    Call it before the modules with the kernels are imported. The result undoes it: `patch.undo()`, or `with`. Raises
    UserError if Triton is not installed.
    """
    try:
        return TritonPatch()
    except ImportError as error:
        raise UserError(callers_location(), f"there is no Triton to patch: {error}", "pip install triton") from error
