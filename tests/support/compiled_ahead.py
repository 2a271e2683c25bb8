"""Programs for the tests on a GPU: each compiled once, by as many processes as the machine has cores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context

from tunesmith.records import Binary, Module, Target
from tunesmith.toolchains import TOOLCHAINS

MOST_PROCESSES = 16

_begun: dict[tuple[Module, Target], Future[Binary]] = {}


@contextmanager
def ahead(modules: Iterable[Module], target: Target) -> Iterator[None]:
    """While it lasts, other processes compile these modules, in their order; afterwards they stop."""
    context = get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, MOST_PROCESSES), context) as pool:
        _begun.update({(module, target): pool.submit(_compile, module, target) for module in dict.fromkeys(modules)})
        try:
            yield
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            _begun.clear()


@cache
def binary(module: Module, target: Target) -> Binary:
    """Of a module, whether it was begun ahead or not; raises CompileError."""
    begun = _begun.get((module, target))
    return begun.result() if begun else _compile(module, target)


def _compile(module: Module, target: Target) -> Binary:
    return TOOLCHAINS[module.language].compile(module, target)
