"""Facts about the kernels in a cubin, read without a driver: registers, stack, static shared memory, thread limits.

A cubin is a 64-bit ELF file. Section `.nv.info` holds attributes of the kernels by symbol, and `.nv.info.K` those of
kernel K. Section `.nv.shared.K` is as large as K's static shared memory. NVIDIA's `cuobjdump --dump-resource-usage`
reads the same layout; the numbers agree with it for cubins from CUDA 12.8 to 13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.records import CompiledFacts

REGISTERS, FRAME_BYTES, MAX_THREADS, REQUIRED_THREADS = 0x2F, 0x11, 0x05, 0x10
"""Attributes: registers and stack bytes per thread; `__launch_bounds__`; the exact block size that a kernel needs."""

RESERVED_SHARED_BYTES = 1024
"""Since compute capability 9.0 a kernel's section also counts the system's own kibibyte."""

_SIZED = 0x04
"""The attribute format whose value is a byte count, followed by that many bytes."""


@dataclass(frozen=True, slots=True)
class _Section:
    offset: int
    size: int


_NONE = _Section(0, 0)


def cubin_facts(
    cubin: bytes, entries: Sequence[str], architecture: str, shared_bytes: int = 0
) -> tuple[CompiledFacts, ...]:
    """One record for each of `entries`. Every launch adds `shared_bytes` to the static shared memory.

    The stack frame, in CUDA's local memory, counts as spills. It also holds arrays that are indexed at run time. Raises
    ValueError for anything but a cubin with these entries.
    """
    if cubin[:4] != b"\x7fELF" or len(cubin) < 64:
        raise ValueError("not a cubin")
    sections = _sections(cubin)
    if missing := [entry for entry in entries if f".text.{entry}" not in sections]:
        raise ValueError(f"no kernel named {', '.join(missing)} in the cubin")
    symbols = _symbols(cubin, sections)
    attributes = {
        (code, symbols[struct.unpack_from("<I", payload)[0]]): struct.unpack_from("<I", payload, 4)[0]
        for code, payload in _attributes(cubin, sections[".nv.info"])
        if code in (REGISTERS, FRAME_BYTES)
    }
    reserved = RESERVED_SHARED_BYTES if _capability(architecture) >= 90 else 0
    return tuple(
        CompiledFacts(
            entry=entry,
            registers=attributes.get((REGISTERS, entry)),
            spill_bytes=attributes.get((FRAME_BYTES, entry), 0),
            local_bytes=shared_bytes + max(0, sections.get(f".nv.shared.{entry}", _NONE).size - reserved),
            max_work_group_size=_thread_limit(cubin, sections, entry),
        )
        for entry in entries
    )


def _capability(architecture: str) -> int:
    return int("".join(filter(str.isdigit, architecture)))


def _thread_limit(cubin: bytes, sections: dict[str, _Section], entry: str) -> int | None:
    for code, payload in _attributes(cubin, sections.get(f".nv.info.{entry}", _NONE)):
        if code in (MAX_THREADS, REQUIRED_THREADS):
            x, y, z = struct.unpack_from("<3I", payload)
            return int(x * y * z)
    return None


def _sections(cubin: bytes) -> dict[str, _Section]:
    (table,) = struct.unpack_from("<Q", cubin, 40)
    width, count, names_index = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + index * width) for index in range(count)]
    names = headers[names_index][4]
    return {_text(cubin, names + header[0]): _Section(header[4], header[5]) for header in headers}


def _symbols(cubin: bytes, sections: dict[str, _Section]) -> list[str]:
    table, names = sections[".symtab"], sections[".strtab"].offset
    width = 24
    return [
        _text(cubin, names + struct.unpack_from("<I", cubin, offset)[0])
        for offset in range(table.offset, table.offset + table.size, width)
    ]


def _attributes(cubin: bytes, section: _Section) -> Iterator[tuple[int, bytes]]:
    offset, end = section.offset, section.offset + section.size
    while offset < end:
        form, code, value = struct.unpack_from("<BBH", cubin, offset)
        offset += 4
        size = value if form == _SIZED else 0
        yield code, cubin[offset : offset + size]
        offset += size


def _text(cubin: bytes, offset: int) -> str:
    return cubin[offset : cubin.index(0, offset)].decode()
