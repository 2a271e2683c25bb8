"""The reasons by which the kernel families of a package reject configurations, read from its sources."""

from __future__ import annotations

import re
from importlib.resources import files
from types import ModuleType


def reasons_of(package: ModuleType) -> list[str]:
    """Every reason that is written out in a file of the package."""
    texts = (file.read_text(encoding="utf-8") for file in files(package).iterdir() if file.name.endswith(".py"))
    found = sorted({reason for text in texts for reason in re.findall(r'Rejection\(\s*"([^"]+)"', text)})
    assert found, package
    return found
