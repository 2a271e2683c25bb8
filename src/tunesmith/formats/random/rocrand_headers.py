"""C++ headers with tuned launch shapes: `<generator>_config.hpp` for rocRAND, and for programs without rocRAND.

For gfx architectures the header is what rocRAND includes from `library/src/rng/config`: a specialisation of its
`generator_config_selector`. rocRAND's enumeration does not have other architectures (`sm_90`, `x86_64`). For these,
the same switch is over our own `target_arch`, from `tunesmith_target_arch.hpp` beside the header. If a header has both
parts, rocRAND's part is compiled where `config_defaults.hpp` exists (inside rocRAND), and ours elsewhere.

Names that rocRAND's library requires are facts of its interface; all other text of the files is ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tunesmith.records import UNKNOWN_ARCHITECTURE, LaunchShape, UserError

from ..templating import template
from .cpp_switch import Shapes, doubted, merged

TARGETS_FILE = "tunesmith_target_arch.hpp"
_CONFIG = "generator_config.hpp.jinja"

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    i386 linux unix NULL
"""
"""C++20's keywords and alternative tokens, and lower-case macros that compilers define."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OURS = "namespace tunesmith::random"
_THEIRS = "generator_config_selector<"


def file_name(generator: str) -> str:
    """The header's file name. Raises UserError for a generator whose name is no identifier."""
    if not _IDENTIFIER.fullmatch(generator):
        raise UserError(generator, "is no name for a C++ header", "rename the generator in the benchmark")
    return f"{generator}_config.hpp"


def check_architecture(name: str) -> None:
    """Raises UserError if no C++ enumerator can have this name: a keyword, a macro, or no identifier."""
    if name in _KEYWORDS.split() or not _IDENTIFIER.fullmatch(name):
        remedy = "call the architecture otherwise in the benchmark's context; the table has it all the same"
        raise UserError(name, "cannot be the name of an architecture in a C++ header", remedy)


def header(
    generator: str,
    shapes: Shapes,
    default: LaunchShape,
    existing: str = "",
    location: str = "",
    doubts: Mapping[str, str] | None = None,
) -> str:
    """The header's text: `existing` with the shapes of these architectures inserted, or a new header.

    Everything else in an existing header stays: other architectures, its licence, text written by hand. The
    architecture `unknown` is left out, since rocRAND also takes that branch for its default ordering, whose sequence
    must not change. `doubts`, by architecture, become comments behind the architecture's returns, until its shape is
    chosen anew. Raises UserError if an existing header has no switch over `target_arch`, or if no shape is left.
    """
    shapes = {name: shapes[name] for name in sorted(shapes) if name != UNKNOWN_ARCHITECTURE}
    for name in shapes:
        check_architecture(name)
    if not shapes:
        raise UserError(file_name(generator), "no architecture that it can name was measured", "say which it was")
    theirs = {name: shape for name, shape in shapes.items() if name.startswith("gfx")}
    ours = shapes if len(theirs) < len(shapes) else {}
    if not existing:
        text = template(_CONFIG).render(generator=generator, theirs=theirs, ours=ours, default=default, part="whole")
    else:
        text = _into(existing, generator, theirs, ours, default, location)
    return doubted(text, {name: (doubts or {}).get(name, "") for name in shapes})


def targets(names: Sequence[str], existing: str = "") -> str:
    """The text of `tunesmith_target_arch.hpp` for these architectures and those of an existing file."""
    enumeration = re.search(r"enum class target_arch[^{]*\{([^}]*)\}", existing)
    before = re.findall(r"^\s*(\w+),", enumeration[1], re.MULTILINE) if enumeration else []
    architectures = sorted({*names, *before} - {UNKNOWN_ARCHITECTURE})
    for name in architectures:
        check_architecture(name)
    return template("tunesmith_target_arch.hpp.jinja").render(names=architectures)


def _into(text: str, generator: str, theirs: Shapes, ours: Shapes, default: LaunchShape, location: str) -> str:
    """An existing header with both parts updated; a part that the header lacks is added beside the other part."""
    start = text.find(_OURS)
    parts = {"theirs": text if start < 0 else text[:start], "ours": "" if start < 0 else text[start:]}
    new = {"theirs": theirs, "ours": ours}
    has = {"theirs": _THEIRS in parts["theirs"], "ours": start >= 0}
    if not any(has.values()):
        remedy = "move it away, and it is written anew"
        raise UserError(location, f"has no {_THEIRS}...> with switches over target_arch", remedy)
    for name, shapes in new.items():
        if shapes and has[name]:
            parts[name] = merged(parts[name], shapes, location)
    text = parts["theirs"] + parts["ours"]
    for name, shapes in new.items():
        if shapes and not has[name]:
            part = template(_CONFIG).render(generator=generator, theirs=theirs, ours=ours, default=default, part=name)
            text = _beside(text, part, location, first=name == "theirs")
    return text


def _beside(text: str, part: str, location: str, first: bool) -> str:
    """The header with a second part inside the same include guard.

    rocRAND's part is compiled where `config_defaults.hpp` exists, ours elsewhere.
    """
    guard = re.search(r"^#ifndef (\w+)\s*\n#define \1[^\n]*\n", text, re.MULTILINE)
    end = text.rfind("#endif")
    if guard is None or end < guard.end():
        raise UserError(location, "has no include guard", "move it away, and it is written anew")
    before, body, after = text[: guard.end()], text[guard.end() : end].strip("\n"), text[end:]
    theirs, ours = (part.strip("\n"), body) if first else (body, part.strip("\n"))
    inside = f'#if __has_include("config_defaults.hpp")\n\n{theirs}\n\n#else\n\n{ours}\n\n#endif'
    return f"{before}\n{inside}\n\n{after}"
