"""Hooks of the documentation site (`mkdocs.yml`).

A link to a file outside `docs/` becomes the file's name. Words after a fence's language that say when an example runs
(`python gpu`) are removed.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_FENCE = re.compile(r"^( *```\w+)(?: \w+)*(?= title=|$)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The changed text of a page. MkDocs calls this for each page; the page's path is relative to `docs/`."""
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        inside = target == "docs" or target.startswith("docs/")
        return link[0] if inside else f"{link[1]} (`{target}` in the repository)"

    return _LINK.sub(replaced, _FENCE.sub(r"\1", markdown))
