"""The BLAS that comes with a device. It is found, not compiled: a module in the language `BLAS` names its functions.

On NVIDIA's GPUs the BLAS is cuBLAS, from NVIDIA's wheels (PyTorch installs them) or the system. On the host's CPU it is
the BLAS that SciPy was built with, which is OpenBLAS in SciPy's own wheels.
"""

from __future__ import annotations

import ctypes
import re
import time
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
"""Names for the system's loader, if NVIDIA's own finder is not installed."""

CUBLAS_REMEDY = "pip install nvidia-cublas, of the driver's major version"


@dataclass(frozen=True, slots=True)
class BlasLibrary:
    """A BLAS: the `location` by which a device loads it; name and version, with everything that changes its speed."""

    location: str
    version: str


class BlasToolchain(Toolchain):
    """Finds a device's BLAS. A binary's payload is the library's location; every function of the library is an entry.

    The library depends on the device, so `compile` reports a missing library, not `unavailable`.
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
        return Binary(module.digest(), self.language, found.location.encode(), facts)


def library(target: Target) -> BlasLibrary:
    """The BLAS of a device. LookupError, with the remedy, if the device has none or it is not installed."""
    find = _FOUND_BY.get((target.api, target.kind))
    if find is None:
        raise LookupError(f"{target.name}, reached through {target.api}, has no BLAS of its vendor's")
    return find()


@cache
def host_library() -> BlasLibrary:
    """The BLAS that SciPy calls: `OpenBLAS 0.3.30 SkylakeX, 2 threads, of SciPy 1.17.1`."""
    import scipy
    import scipy.linalg.cython_blas  # loads the library that `_loaded` looks at

    # NumPy's wheel contains another copy, which SciPy does not call.
    return BlasLibrary("SciPy", str(_loaded(f"SciPy {scipy.__version__}", "numpy")))


@dataclass(frozen=True, slots=True)
class LoadedBlas:
    """A BLAS in this process. `kernel` is the processor that it chose its code for, `owner` the package that calls it.
    Fields that it does not report are empty or None."""

    name: str
    version: str
    kernel: str
    threads: int | None
    owner: str

    def __str__(self) -> str:
        description = " ".join(part for part in (self.name, self.version, self.kernel) if part)
        return f"{description}{'' if self.threads is None else f', {self.threads} threads'}, of {self.owner}"


def numpy_blas() -> LoadedBlas:
    """The BLAS that NumPy calls, with its present number of threads."""
    import numpy as np

    # SciPy's wheel contains another copy, which NumPy does not call.
    return _loaded(f"NumPy {np.__version__}", "scipy")


def _loaded(owner: str, other: str) -> LoadedBlas:
    """The loaded BLAS that `owner` calls: one that is not part of the package `other` or its libraries."""
    from threadpoolctl import threadpool_info

    libraries = [info for info in threadpool_info() if info["user_api"] == "blas"]
    others_folders = {other, f"{other}.libs"}
    own = [info for info in libraries if not others_folders & set(Path(info["filepath"]).parent.parts)]
    info = (own or libraries or [{}])[0]
    name = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS"}.get(info.get("internal_api", ""), "BLAS")
    version, kernel = (str(info.get(key) or "") for key in ("version", "architecture"))
    return LoadedBlas(name, version, kernel, info.get("num_threads"), owner)


@cache
def cublas_library() -> BlasLibrary:
    """cuBLAS with its version and its mode of addition; both are part of the keys of its measurements. Makes no
    context."""
    path, loaded = _cublas()
    return BlasLibrary(path, f"cuBLAS {'.'.join(map(str, cublas_version(loaded)))}, strict sums")


def release_of(versions: str) -> str:
    """Major and minor version of the cuBLAS that a text of versions names, such as 13.1. Empty if it names none."""
    found = re.search(r"\bcuBLAS (\d+\.\d+)", versions)
    return found[1] if found else ""


def cublas_version(loaded: Any) -> tuple[int, ...]:
    """Major, minor and patch version. Raises LookupError if the library does not answer."""
    version = []
    for part in range(3):
        number = ctypes.c_int()
        if status := loaded.cublasGetProperty(part, ctypes.byref(number)):
            raise LookupError(f"cuBLAS does not tell its version (status {status}): {CUBLAS_REMEDY}")
        version.append(number.value)
    return tuple(version)


def _cublas() -> tuple[str, Any]:
    """Location and loaded library. NVIDIA's finder looks in wheels, conda and the system, and loads dependencies."""
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
"""The function that finds the BLAS, by a device's API and kind."""


LOOK_SECONDS, RESTING = 0.01, 0.1
"""A process rests if it uses less than this share of a look's seconds of a processor."""


def wait_until_threads_rest(longest: float) -> None:
    """Wait until no thread of this process runs, at most so many seconds. OpenBLAS's threads look for work for a tenth
    of a second after a call, and a kernel that shares the processors with them takes up to twice as long."""
    end = time.perf_counter() + longest
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(LOOK_SECONDS)
        if time.process_time() - before < RESTING * LOOK_SECONDS:
            return
