"""What ptxas made of a program, as nvdisasm shows it, which comes with Triton."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tunesmith.records import Binary

SECTION = re.compile(r"^\.text\.(\w+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)")


def instructions(binary: Binary) -> Mapping[str, list[str]]:
    """The names of each entry's instructions, in the order of their addresses; a skip without nvdisasm."""
    found = importlib.util.find_spec("triton")
    disassembler = Path(found.origin).parent / "backends/nvidia/bin/nvdisasm" if found and found.origin else None
    if disassembler is None or not disassembler.exists():
        pytest.skip("no nvdisasm here, which comes with Triton")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.cubin"
        path.write_bytes(binary.payload)
        text = subprocess.run([disassembler, "-c", path], capture_output=True, text=True, check=True).stdout
    entries: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        if section := SECTION.match(line):
            names = entries.setdefault(section[1], [])
        elif instruction := INSTRUCTION.search(line):
            names.append(instruction[1])
    return entries
