"""Compiles Triton's jit functions ahead of time, with types and constants, to machine code. Needs no GPU."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tunesmith.records import Binary, CompiledFacts, Configuration, Module, Target, UserError

from .base import CompileError, Toolchain
from .cubin import cubin_facts
from .triton_text import function_of_text, is_complete, line_of_error

REMEDY = "pip install 'triton>=3.4'"

_PINNED = {"enable_fp_fusion": True}
"""Triton 3.10 turns contraction to FMA off by default. With this setting every release compiles the same program."""

_NO_OPTIONS = ("signature", "constexprs", "divisible_by_16", "waits", "file")
"""Names in `Module.constants` that are no options of Triton's backend."""

_VARIABLES = ("TRITON_", "PTXAS", "NVPTX", "AMDGCN", "DISABLE_", "LLVM_", "MLIR_")
"""Prefixes of environment variables that may change what Triton and its assembler make."""

_CLUSTER = ".reqnctapercluster"
"""The PTX by which a program itself says how many work-groups form a cluster. Triton writes it since 3.6."""

REASONS = {
    **dict.fromkeys(
        ("CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"), "source rejected"
    ),
    "PTXASError": "assembler failed",
}
"""Reasons by the class that Triton raises. Any other class is a failure of the compiler."""


class TritonToolchain(Toolchain):
    """Compiles the function that `Module.python` names; without a name, the entry of `Module.text`.

    `Module.constants` holds everything else that Triton has to know:

    - `signature`: (parameter, type) pairs in the function's order, types as Triton writes them (`*fp32`, `i32`,
      `tensordesc<fp32[1,32,64]>`, `constexpr`);
    - `constexprs`: (parameter, value) pairs, one for every `constexpr`;
    - `divisible_by_16`: parameters (addresses, sizes) that the caller promises to be multiples of 16; optional;
    - `waits`: the `constexpr` that says whether the program waits for the launch before it, which becomes
      `Target.can_wait_for_launches`; optional;
    - `file`: the name of the user's file that holds `Module.text`, for messages; only without `Module.python`;
    - every other name is an option of Triton's backend (`num_warps`, `num_stages`).

    The binary's metadata says how the launch differs from the plan's arguments: `dynamic_shared_bytes`; `threads`;
    `tensor_maps`, a (swizzle, block) pair for each descriptor as it must be encoded; `tensor_map_sizes`, whether each
    descriptor is followed by its shape (int32) and strides (int64); `null_pointers`, how many end the list.
    After `make_tensordesc_arg` in Triton's `backends/nvidia/driver.py`, the same from 3.4 to 3.9.
    """

    language = "Triton"

    def unavailable(self) -> str | None:
        try:
            version = _triton_version()
        except ImportError as error:
            return f"{error}: {REMEDY}"
        if tuple(map(int, version.split(".")[:2])) < (3, 4):
            return f"Triton {version} has no host-side descriptors: {REMEDY}"
        return None

    def version(self, target: Target) -> str:
        return f"Triton {_triton_version()}"

    def compile(self, module: Module, target: Target) -> Binary:
        with _quiet_private_cache():
            compiled = _compile(function_of(module), module, target)
        payload = next((compiled.asm[kind] for kind in ("cubin", "hsaco") if kind in compiled.asm), None)
        if payload is None:
            raise CompileError("no machine code", f"Triton made {', '.join(compiled.asm)} for {target.architecture}")
        if module.constants.get("num_ctas", 1) != 1 and _CLUSTER not in compiled.asm.get("ptx", ""):
            what = f"Triton {_triton_version()} leaves the size of clusters to the launch"
            raise CompileError("clusters", f"{what}: take num_ctas: 1, or a newer Triton on a GPU with clusters")
        metadata = _metadata(compiled.metadata, target)
        return Binary(module.digest(), self.language, payload, _facts(payload, module, metadata, target), metadata)

    def keeps(self, module: Module) -> bool:
        """Not if the function is in a file of the user's, or in a text, that may import other files."""
        if not module.python:
            return is_complete(module.text)
        return not module.python.partition(":")[0].endswith(".py")

    def conditions(self, target: Target) -> tuple[str, ...]:
        variables = sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES))
        return (self.version(target), json.dumps([_PINNED, variables]))


def _triton_version() -> str:
    import triton

    return str(triton.__version__)


def function_of(module: Module) -> Any:
    """The module's jit function. Raises UserError if `Module.python` names none, CompileError if the text has none."""
    if module.python:
        return jit_function(module.python)
    try:
        return function_of_text(module.text, _file(module), module.entries[0])
    except (Exception, SystemExit) as error:  # a user's text may raise any exception
        raise CompileError("source rejected", _messages(error, module)) from error


def jit_function(name: str) -> Any:
    """The function named `package.module:name` or `path/file.py:name`. Raises UserError if there is none."""
    location, _, attribute = name.rpartition(":")
    try:
        loaded = _from_file(Path(location)) if location.endswith(".py") else importlib.import_module(location)
        return getattr(loaded, attribute)
    except (ImportError, AttributeError, OSError) as error:
        raise UserError(
            name, f"no such jit function ({error})", "name it package.module:name or file.py:name"
        ) from error


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _file(module: Module) -> str:
    return str(module.constants.get("file", "a kernel.py"))


def _pairs(constants: Configuration, name: str) -> dict[str, Any]:
    return dict(constants.get(name, ()))  # type: ignore[arg-type]  # pairs, by the contract of `TritonToolchain`


def _compile(function: Any, module: Module, target: Target) -> Any:
    import triton
    from triton.compiler import ASTSource

    constants = module.constants
    signature, constexprs = _pairs(constants, "signature"), _pairs(constants, "constexprs")
    if waits := constants.get("waits"):
        constexprs[str(waits)] = target.can_wait_for_launches
    paths = {name: (index,) for index, name in enumerate(signature)}
    aligned: Any = constants.get("divisible_by_16", ())
    attributes = {paths[name]: [["tt.divisibility", 16]] for name in aligned}
    options = {**_PINNED, **constants.without(_NO_OPTIONS)}
    try:
        source = ASTSource(function, signature, constexprs, attributes)
        return triton.compile(source, target=_gpu_target(target), options=options)
    except Exception as error:  # Triton may raise any exception: it is this candidate's result
        raise CompileError(REASONS.get(type(error).__name__, "compiler failed"), _messages(error, module)) from error


def _messages(error: BaseException | None, module: Module) -> str:
    """The messages of the error and its causes: Triton's shows the line of source, its cause says what is wrong.

    If the module is a user's text, each message begins with the line of the user's file.
    """
    lines, file = [], _file(module)
    while error:
        line = None if module.python else line_of_error(error, module.text, file)
        lines.append(f"{file}:{line}: " * (line is not None) + f"{type(error).__name__}: {error}")
        error = error.__cause__
    return "\n".join(lines)


def _gpu_target(target: Target) -> Any:
    from triton.backends.compiler import GPUTarget

    if target.architecture.startswith("sm_"):
        return GPUTarget("cuda", int(target.architecture.removeprefix("sm_").rstrip("af")), 32)
    return GPUTarget("hip", target.architecture, target.sub_group_size)


@contextlib.contextmanager
def _quiet_private_cache() -> Iterator[None]:
    """Give Triton a temporary cache, not the user's, and suppress the errors that it prints."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope(), contextlib.redirect_stdout(io.StringIO()):
        knobs.cache.dir = folder
        yield


def _metadata(raw: Any, target: Target) -> Configuration:
    scratch = getattr(raw, "global_scratch_size", 0) or 0
    if scratch:
        raise CompileError(
            "global scratch", f"{scratch} bytes a work-group; make descriptors on the host, or load by pointers"
        )
    maps: list[Mapping[str, Any]] = getattr(raw, "tensordesc_meta", None) or []
    return Configuration(
        {
            "dynamic_shared_bytes": int(raw.shared),
            "threads": int(raw.num_warps) * _gpu_target(target).warp_size,
            "tensor_maps": tuple((int(entry["swizzle"]), tuple(entry["block_size"])) for entry in maps),
            "tensor_map_sizes": True,
            "null_pointers": 2,  # the global and the profiling scratch, both unused
        }
    )


def _facts(payload: bytes, module: Module, metadata: Configuration, target: Target) -> tuple[CompiledFacts, ...]:
    shared, threads = metadata.integer("dynamic_shared_bytes"), metadata.integer("threads")
    if target.architecture.startswith("sm_"):
        return cubin_facts(payload, module.entries, target.architecture, shared)
    return tuple(CompiledFacts(entry, local_bytes=shared, max_work_group_size=threads) for entry in module.entries)
