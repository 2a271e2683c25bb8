"""The described kernel in CUDA C++."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tunesmith.kernels.cuda_limits import DECLARED_SHARED_BYTES, MOST_WORK_GROUPS
from tunesmith.records import Configuration, Launch, LocalArgument, Problem, Rejection, Target

from .family import CustomKernel

MOST_WORK_ITEMS = (1024, 1024, 64)
"""The most work-items of a work-group along x, y and z, on every architecture since Maxwell. Source: CUDA programming
guide, technical specifications."""


class CustomCudaKernel(CustomKernel):
    """A described kernel whose arguments in local memory are parts of dynamic shared memory, one after the other.

    A kernel in CUDA C++ has no parameters for them: it finds the first byte by `extern __shared__`.
    """

    name, language = "CustomCuda", "CUDA"
    local_alignment = 16
    """Bytes to which every argument's part is aligned; no type asks for more."""
    most_declared_bytes = DECLARED_SHARED_BYTES

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        rejections = list(super().rejections_for(config, problem, target))
        yield from rejections or self._wrong_shape(config, problem, target)

    def launches(self, config: Configuration, problem: Problem, target: Target) -> tuple[Launch, ...]:
        return tuple(map(_with_shared_memory, super().launches(config, problem, target)))

    def _wrong_shape(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        for launch in self.launches(config, problem, target):
            yield from too_many_groups(launch)
            for axis, items, most in zip("xyz", launch.work_group, MOST_WORK_ITEMS, strict=True):
                if items > most:
                    yield Rejection("work-group size", f"{items} work-items along {axis}, the device allows {most}")


def _with_shared_memory(launch: Launch) -> Launch:
    """The launch with dynamic shared memory in the place of its arguments in local memory."""
    local = [argument for argument in launch.arguments if isinstance(argument, LocalArgument)]
    passed = tuple(argument for argument in launch.arguments if not isinstance(argument, LocalArgument))
    return replace(launch, arguments=passed, shared_bytes=sum(argument.size for argument in local))


def too_many_groups(launch: Launch) -> Iterator[Rejection]:
    """A rejection for each axis along which the grid is too long."""
    for axis, groups, most in zip("xyz", launch.grid, MOST_WORK_GROUPS, strict=True):
        if groups > most:
            yield Rejection("grid", f"{groups} work-groups along {axis}, a launch has at most {most}")
