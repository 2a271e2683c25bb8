"""The BLAS that comes with a device, found instead of compiled: a module in the language `BLAS` is one of its
functions.

On NVIDIA's GPUs that is cuBLAS, from NVIDIA's wheels (PyTorch brings them) or the system; on the host's CPU the BLAS
that SciPy was built with, which is OpenBLAS in SciPy's own wheels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tunesmith.records import Binary, CompiledFacts, Module, Target

from .base import CompileError, Toolchain

LANGUAGE = "BLAS"
FUNCTIONS = ("gemm",)

CUBLAS_NAMES = ("libcublas.so.13", "libcublas.so.12")
"""Asked of the system's loader where NVIDIA's own finder is not installed."""

CUBLAS_REMEDY = "pip install nvidia-cublas, of the driver's major version"


@dataclass(frozen=True, slots=True)
class BlasLibrary:
    """A BLAS: what a device loads it by, and its name and version with all that changes its speed."""

    place: str
    version: str


class BlasToolchain(Toolchain):
    """A binary's payload is what the device loads the library by; every function of it counts as an entry.

    Which library it is depends on the device, so `compile` says when there is none, and not `unavailable`.
    """

    language = LANGUAGE

    def version(self, target: Target) -> str:
        try:
            return library(target).version
        except LookupError:
            return "no BLAS"

    def compile(self, module: Module, target: Target) -> Binary:
        if unknown := [entry for entry in module.entries if entry not in FUNCTIONS]:
            raise CompileError("no such entry", f"there is no {unknown[0]}, only {', '.join(FUNCTIONS)}")
        try:
            found = library(target)
        except LookupError as error:
            raise CompileError("no library", str(error.args[0])) from error
        facts = tuple(CompiledFacts(entry) for entry in module.entries)
        return Binary(module.digest(), self.language, found.place.encode(), facts)


def library(target: Target) -> BlasLibrary:
    """The BLAS of a device; LookupError, with the remedy, where it has none or none is installed."""
    find = _FOUND_BY.get((target.api, target.kind))
    if find is None:
        raise LookupError(f"{target.name}, reached through {target.api}, has no BLAS of its vendor's")
    return find()


@cache
def host_library() -> BlasLibrary:
    """The BLAS that SciPy calls: `OpenBLAS 0.3.30 SkylakeX, 2 threads, of SciPy 1.17.1`."""
    # Imported here, the first of them since it loads the library that the second looks at.
    import scipy
    import scipy.linalg.cython_blas  # loaded for its library

    # NumPy's wheel brings a copy of its own, which is not the one that is called.
    return BlasLibrary("SciPy", str(_loaded(f"SciPy {scipy.__version__}", "numpy")))


@dataclass(frozen=True, slots=True)
class LoadedBlas:
    """A BLAS in this process: its `kernel` is the processor that it chose its code for; `owner` is who calls it. Empty
    and None are what it does not tell."""

    name: str
    version: str
    kernel: str
    threads: int | None
    owner: str

    def __str__(self) -> str:
        told = " ".join(part for part in (self.name, self.version, self.kernel) if part)
        return f"{told}{'' if self.threads is None else f', {self.threads} threads'}, of {self.owner}"


def numpy_blas() -> LoadedBlas:
    """The BLAS that NumPy calls, as it is now."""
    import numpy as np

    # SciPy's wheel brings a copy of its own, too.
    return _loaded(f"NumPy {np.__version__}", "scipy")


def _loaded(owner: str, other: str) -> LoadedBlas:
    """Of several that are loaded, one that does not lie in the package `other`, nor among its libraries."""
    from threadpoolctl import threadpool_info

    every = [one for one in threadpool_info() if one["user_api"] == "blas"]
    own = [one for one in every if not {other, f"{other}.libs"} & set(Path(one["filepath"]).parent.parts)]
    told = (own or every or [{}])[0]
    name = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS"}.get(told.get("internal_api", ""), "BLAS")
    version, kernel = (str(told.get(key) or "") for key in ("version", "architecture"))
    return LoadedBlas(name, version, kernel, told.get("num_threads"), owner)


@cache
def cublas_library() -> BlasLibrary:
    """cuBLAS with its version, which it is asked for, and how it is to add up: both are in the key of what it computes.
    No context is made."""
    path, loaded = _cublas()
    return BlasLibrary(path, f"cuBLAS {'.'.join(map(str, cublas_version(loaded)))}, strict sums")


def cublas_version(loaded: Any) -> tuple[int, ...]:
    """Major, minor, patch. Raises LookupError where the library does not answer."""
    version = []
    for part in range(3):
        number = ctypes.c_int()
        if status := loaded.cublasGetProperty(part, ctypes.byref(number)):
            raise LookupError(f"cuBLAS does not tell its version (status {status}): {CUBLAS_REMEDY}")
        version.append(number.value)
    return tuple(version)


def _cublas() -> tuple[str, Any]:
    """Where it is, and it loaded. NVIDIA's finder looks into wheels, conda and the system, and loads what it needs."""
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return _from_system()
    try:
        path = load_nvidia_dynamic_lib("cublas").abs_path
    except (DynamicLibNotFoundError, RuntimeError) as error:
        raise LookupError(f"cuBLAS is not installed ({str(error).splitlines()[0]}): {CUBLAS_REMEDY}") from error
    return path, ctypes.CDLL(path)


def _from_system() -> tuple[str, Any]:
    for name in CUBLAS_NAMES:
        with suppress(OSError):
            return name, ctypes.CDLL(name)
    raise LookupError(f"no {' or '.join(CUBLAS_NAMES)} is installed: {CUBLAS_REMEDY}")


_FOUND_BY: Mapping[tuple[str, str], Callable[[], BlasLibrary]] = {
    ("CUDA", "GPU"): cublas_library,
    ("OpenCL", "CPU"): host_library,
}
"""By a device's API and kind."""
