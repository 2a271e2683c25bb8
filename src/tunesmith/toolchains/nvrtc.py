"""Compiles CUDA C++ by NVRTC to machine code for one architecture. Needs neither a GPU nor its driver.

We use `cuda.bindings` and not `cuda.core.Program`, since releases of the latter before 1.0 load the driver.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import metadata
from typing import Any

from tunesmith.records import Binary, Module, Target

from .base import CompileError, Toolchain
from .cubin import cubin_facts

REMEDY = "pip install cuda-bindings nvidia-cuda-nvrtc, of the driver's major version"

_STANDARD = "--std=c++17"
_ARCHITECTURE = "--gpu-architecture="
_INCLUDING = ("-I", "--include-path", "-include", "--pre-include")
_PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")


class NvrtcToolchain(Toolchain):
    """`Module.options` are NVRTC's own (`-DTILE=64`, `--use_fast_math`). C++17 is added; so is the architecture, unless
    the options have a variant of it (`--gpu-architecture=sm_90a`)."""

    language = "CUDA"

    def unavailable(self) -> str | None:
        try:
            self._release()
        except ImportError as error:
            return f"{error}: {REMEDY}"
        except RuntimeError as error:  # cuda.bindings is installed, but not the compiler's library
            return f"NVRTC cannot be loaded ({error}): {REMEDY}"
        return None

    def version(self, target: Target) -> str:
        return f"NVRTC {self._release()}"

    def compile(self, module: Module, target: Target) -> Binary:
        variants = [option for option in module.options if option.startswith(_ARCHITECTURE)]
        options = [_STANDARD, *([] if variants else [f"{_ARCHITECTURE}{target.architecture}"]), *module.options]
        cubin = _compile(module.text, options)
        try:
            facts = cubin_facts(cubin, module.entries, target.architecture)
        except ValueError as error:
            raise CompileError("missing entry", str(error)) from error
        return Binary(module.digest(), self.language, cubin, facts)

    def architectures(self) -> tuple[str, ...]:
        from cuda.bindings import nvrtc

        (numbers,) = _checked(nvrtc.nvrtcGetSupportedArchs())
        return tuple(f"sm_{number}" for number in numbers)

    def keeps(self, module: Module) -> bool:
        """Not if an option names a folder or a file, since their contents are in no digest."""
        return not any(option.startswith(_INCLUDING) for option in module.options)

    def conditions(self, target: Target) -> tuple[str, ...]:
        """The versions of NVRTC and of its package: NVRTC does not report the last part of its version."""
        return (self.version(target), _STANDARD, *(release for name in _PACKAGES for release in _installed(name)))

    def _release(self) -> str:
        from cuda.bindings import nvrtc

        major, minor = _checked(nvrtc.nvrtcVersion())
        return f"{major}.{minor}"


def _installed(package: str) -> tuple[str, ...]:
    """The package's version, or nothing if it is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return (metadata.version(package),)
    return ()


def _compile(text: str, options: list[str]) -> bytes:
    from cuda.bindings import nvrtc

    (program,) = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"module.cu", 0, [], []))
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _fetch(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise CompileError(_reason(status), log.rstrip(b"\0").decode(errors="replace"))
        return _fetch(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _fetch(program: Any, size_of: Any, copy: Any) -> bytes:
    """The bytes that a function of the bindings writes. It takes our `bytes` object and fills it in place."""
    (size,) = _checked(size_of(program))
    buffer = bytes(size + 2)  # Python shares `bytes` of length 0 and 1, which must not be written
    _checked(copy(program, buffer))
    return buffer[:size]


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values that a call returned after its status. Raises CompileError if the status is an error."""
    status, *values = answer
    if status.value:
        raise CompileError(_reason(status), "")
    return tuple(values)


def _reason(status: Any) -> str:
    """`NVRTC_ERROR_COMPILATION` -> `compilation`."""
    return str(status.name).removeprefix("NVRTC_ERROR_").lower().replace("_", " ")
