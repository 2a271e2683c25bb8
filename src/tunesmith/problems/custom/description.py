"""`Description`: the user's own kernel, read from its YAML file. `docs/custom-kernels.md` explains the keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tunesmith.problems.yaml import Node
from tunesmith.records import UserError
from tunesmith.spaces import NUMBER_OR_WORD, Parameter
from tunesmith.spaces.expressions import Expression

from .caller import PREFIX
from .launches import LAUNCH_KEYS, LAUNCH_OPTIONS, SEVERAL, DescribedLaunch, LaunchReader
from .triton_source import TRITON

TextOf = Callable[[str, str, str], str]
"""Gives the text of a file that a description names. The arguments are the file's part (a language, or Reference), its
name, and the location of the name."""

LIMITS = ("ComputeUnits", "LocalMemoryBytes", "MaxWorkGroupSize", "SubGroupSize")
"""Properties of the device, which constraints and launches may name beside sizes and parameters."""

RESERVED = (*LIMITS, "KernelLanguage", "ProblemSizes", "Groups")
"""Names that no size, parameter or argument may have: in a tuning file the last three mean something else."""

LANGUAGES = ("OpenCL", "CUDA", TRITON)
FLOATS = ("float16", "bfloat16", "float32", "float64")
DATA_TYPES = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

_NEEDED = ("Name", "Source", "Sizes", "Arguments", "Reference", "Flops")
_OPTIONAL = ("Language", "Parameters", "Constraints", "Tolerance", "Bytes", "Options", "DivisibleBy16")
ANY = "any"
"""Says of a parameter that the tuning file lists its values. A new value then makes no new description."""

FIRST = "first"
"""The reference that is the result of the first solution that runs."""

_KEY = re.compile(r"[0-9a-f]{16,64}\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a configuration must fulfil, and the reason under which rejected configurations are counted."""

    require: Expression
    reason: str


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """A dense array in row-major order.

    `low` and `high` bound its random contents, if the user gives a Range. `contents` is the key of contents that the
    calling program registered (`caller.register_contents`), if it did.

    A `scratch` array holds what one launch leaves for the next. It is part of the workspace, and its shape may name
    parameters.
    """

    name: str
    dtype: str
    shape: tuple[Expression, ...]
    role: Literal["in", "out", "inout", "scratch"]
    low: Expression | None = None
    high: Expression | None = None
    contents: str = ""


@dataclass(frozen=True, slots=True)
class ValueArgument:
    """A number passed by value."""

    name: str
    dtype: str
    value: Expression


@dataclass(frozen=True, slots=True)
class LocalMemoryArgument:
    """A pointer to local memory, with its size in bytes."""

    name: str
    size: Expression


@dataclass(frozen=True, slots=True)
class Source:
    """The kernel's text in one language, with options for that language's compiler. `file` is the name of its file in
    the description."""

    text: str
    options: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class Description:
    """A described kernel.

    `path` is absolute if this process read the file; otherwise it is the file's plain name, and only messages use it.
    `sources` holds a source for each language. `reference` is a function of `reference_file`, `caller:KEY` for a
    function of the calling program, or `first` for the result of the first solution that runs. `divisible_by_16` names
    numbers that are multiples of 16.
    """

    path: Path
    name: str
    sources: Mapping[str, Source]
    reference: str
    reference_file: Path
    reference_location: str
    reference_text: str
    sizes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    arguments: tuple[ArrayArgument | ValueArgument | LocalMemoryArgument, ...]
    launches: tuple[DescribedLaunch, ...]
    tolerance: Expression | None
    flops: Expression
    bytes: Expression | None
    divisible_by_16: tuple[str, ...]

    @property
    def arrays(self) -> tuple[ArrayArgument, ...]:
        """The arrays that the caller passes."""
        return tuple(array for array in self._all_arrays if array.role != "scratch")

    @property
    def scratch(self) -> tuple[ArrayArgument, ...]:
        """The arrays in the workspace."""
        return tuple(array for array in self._all_arrays if array.role == "scratch")

    @property
    def callers_reference(self) -> str:
        """The key of a reference that is a function of the calling program; empty for any other reference."""
        return self.reference.removeprefix(PREFIX) if self.reference.startswith(PREFIX) else ""

    @property
    def compares_with_first(self) -> bool:
        """Whether a result is right if it agrees with that of the first solution that runs."""
        return self.reference == FIRST

    @property
    def single_launches(self) -> tuple[Description, ...]:
        """The description of each launch by itself, with the arguments that the launch takes, in its order."""
        arguments = {argument.name: argument for argument in self.arguments}
        return tuple(
            replace(self, launches=(launch,), arguments=tuple(arguments[name] for name in launch.arguments))
            for launch in self.launches
        )

    @property
    def entries(self) -> tuple[str, ...]:
        """The kernels that are launched, each once."""
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))

    @property
    def _all_arrays(self) -> tuple[ArrayArgument, ...]:
        return tuple(argument for argument in self.arguments if isinstance(argument, ArrayArgument))

    @property
    def divisible_values(self) -> tuple[ValueArgument, ...]:
        values = (argument for argument in self.arguments if isinstance(argument, ValueArgument))
        return tuple(value for value in values if value.name in self.divisible_by_16)


def describe(path: Path, root: Node, text_of: TextOf) -> Description:
    """The description that a file holds. Raises UserError with the line of `path` that is wrong."""
    several = SEVERAL in root.mapping("the description of a kernel")
    needed, optional = ((SEVERAL,), LAUNCH_KEYS) if several else (LAUNCH_KEYS, ())
    fields = root.fields("the description of a kernel", (*_NEEDED, *needed), (*_OPTIONAL, *LAUNCH_OPTIONS, *optional))
    sizes = tuple(_new_name(entry, "a size") for entry in fields["Sizes"].sequence("Sizes"))
    parameters = _parameters(fields.get("Parameters"))
    launch_names = (*sizes, *(parameter.name for parameter in parameters), *LIMITS)
    _refuse_twice(fields["Sizes"], launch_names)
    if not sizes:
        raise fields["Sizes"].wrong("Sizes is empty", "name at least one size")
    arguments = _arguments(fields["Arguments"], sizes, launch_names)
    argument_names = [argument.name for argument in arguments]
    file, reference = _reference(fields["Reference"])
    location = fields["Reference"].location
    description = Description(
        path=path,
        name=_new_name(fields["Name"], "Name"),
        sources=_sources(fields, text_of),
        reference=reference,
        reference_file=path.parent / file,
        reference_location=location,
        reference_text=text_of("Reference", file, location) if file else "",
        sizes=sizes,
        parameters=parameters,
        constraints=_constraints(fields.get("Constraints"), launch_names),
        arguments=arguments,
        launches=LaunchReader(launch_names, argument_names, _new_name, _expression).launches(fields),
        tolerance=_amount(fields["Tolerance"], sizes) if "Tolerance" in fields else None,
        flops=_amount(fields["Flops"], sizes),
        bytes=_amount(fields["Bytes"], sizes) if "Bytes" in fields else None,
        divisible_by_16=_words(fields["DivisibleBy16"], "DivisibleBy16") if "DivisibleBy16" in fields else (),
    )
    _check_outputs(description, fields["Arguments"])
    return description


def _sources(fields: Mapping[str, Node], text_of: TextOf) -> dict[str, Source]:
    """The sources by language. `Source` is one file in the given `Language`, or a mapping of languages to files."""
    entry = fields["Source"]
    if isinstance(entry.content, dict):
        if "Language" in fields:
            raise fields["Language"].wrong("Source says which languages there are", "leave Language out")
        files = entry.fields("Source", (), LANGUAGES)
        if not files:
            raise entry.wrong("Source names no file", f"give one for each language: {', '.join(LANGUAGES)}")
    else:
        language = fields["Language"].word("Language") if "Language" in fields else LANGUAGES[0]
        if language not in LANGUAGES:
            remedy = f"write the kernel in {' or '.join(LANGUAGES)}"
            raise fields["Language"].wrong(f"Language: {language} is not supported", remedy)
        files = {language: entry}
    options = _options(fields.get("Options"), tuple(files))
    return {
        language: Source(text_of(language, file.word("Source"), file.location), options[language], file.word("Source"))
        for language, file in files.items()
    }


def _options(entry: Node | None, languages: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The compiler's options by language. The entry is one list for every language, or a list for each."""
    if entry is None:
        return dict.fromkeys(languages, ())
    if not isinstance(entry.content, dict):
        return dict.fromkeys(languages, _words(entry))
    lists = entry.fields("Options", (), languages)
    return {language: _words(lists[language]) if language in lists else () for language in languages}


def _words(entry: Node, what: str = "Options") -> tuple[str, ...]:
    return tuple(item.word(what) for item in entry.sequence(what))


def _check_outputs(description: Description, location: Node) -> None:
    outputs = [array for array in description.arrays if array.role != "in"]
    if not outputs:
        raise location.wrong("no argument is an output", "give one of them Role: out or inout")
    if description.tolerance is None and any(array.dtype in FLOATS for array in outputs):
        raise location.wrong(
            "an output holds floating-point numbers, but there is no Tolerance",
            "give the number of roundings on the way to one element, such as Tolerance: 5",
        )


def _parameters(entry: Node | None) -> tuple[Parameter, ...]:
    """The parameters, which the source sees as macros."""
    if entry is None:
        return ()
    nodes = entry.mapping("Parameters")
    return tuple(_parameter(_identifier(name, entry.at(name), "a parameter"), nodes[name]) for name in nodes)


def _parameter(name: str, entry: Node) -> Parameter:
    fields = entry.fields(f"the parameter {name}", ("Values",), ("Default", "Doc"))
    doc = fields["Doc"].word("Doc") if "Doc" in fields else ""
    if fields["Values"].content == ANY:
        default = fields["Default"].plain(name) if "Default" in fields else 0
        return Parameter(name, default, (), doc, accepts=NUMBER_OR_WORD)
    values = tuple(item.plain(name) for item in fields["Values"].sequence(f"{name}.Values"))
    for value in values:
        if isinstance(value, tuple) or (isinstance(value, str) and not _IDENTIFIER.match(value)):
            raise entry.wrong(f"{name} cannot be {value!r}", "a macro holds a number, true or false, or one word")
    if not values:
        raise entry.wrong(f"{name} has no values", "list at least one")
    default = fields["Default"].plain(name) if "Default" in fields else values[0]
    if default not in values:
        raise fields["Default"].wrong(f"{name}: the default {default!r} is not among its values", "list it, too")
    return Parameter(name, default, values, doc)


def _constraints(entry: Node | None, names: Iterable[str]) -> tuple[Constraint, ...]:
    constraints = []
    for item in entry.sequence("Constraints") if entry else []:
        fields = item.fields("a constraint", ("Require", "Reason"))
        constraints.append(Constraint(_expression(fields["Require"], names), fields["Reason"].word("Reason")))
    return tuple(constraints)


def _arguments(
    entry: Node, sizes: tuple[str, ...], names: tuple[str, ...]
) -> tuple[ArrayArgument | ValueArgument | LocalMemoryArgument, ...]:
    arguments: list[ArrayArgument | ValueArgument | LocalMemoryArgument] = []
    for item in entry.sequence("Arguments"):
        pairs = item.mapping("an argument")
        if "Shape" in pairs:
            arguments.append(_array(item, sizes, names))
        elif "LocalBytes" in pairs:
            fields = item.fields("an argument in local memory", ("Name", "LocalBytes"))
            arguments.append(
                LocalMemoryArgument(_new_name(fields["Name"], "Name"), _expression(fields["LocalBytes"], names))
            )
        else:
            fields = item.fields("an argument", ("Name", "DataType", "Value"))
            value, dtype = _expression(fields["Value"], names), _data_type(fields["DataType"])
            if dtype == "bfloat16":
                raise fields["DataType"].wrong("no number is passed as bfloat16", "pass it as float32")
            arguments.append(ValueArgument(_new_name(fields["Name"], "Name"), dtype, value))
    _refuse_twice(entry, [argument.name for argument in arguments])
    return tuple(arguments)


def _array(entry: Node, sizes: tuple[str, ...], names: tuple[str, ...]) -> ArrayArgument:
    fields = entry.fields("an array", ("Name", "DataType", "Shape", "Role"), ("Range", "Contents"))
    role = fields["Role"].word("Role")
    if role not in ("in", "out", "inout", "scratch"):
        raise fields["Role"].wrong(f"Role cannot be {role}", "give in, out, inout or scratch")
    extent_names = names if role == "scratch" else sizes
    shape = tuple(_expression(item, extent_names) for item in fields["Shape"].sequence("Shape"))
    contents = fields["Contents"].word("Contents") if "Contents" in fields else ""
    if contents and not _KEY.match(contents):
        raise fields["Contents"].wrong(f"Contents cannot be {contents}", "only tunesmith.tune writes this key")
    low = high = None
    if "Range" in fields:
        bounds = [_expression(item, sizes) for item in fields["Range"].sequence("Range")]
        if len(bounds) != 2:
            raise fields["Range"].wrong("Range has not two entries", "give [low, high]; high is not drawn itself")
        low, high = bounds
    name, dtype = _new_name(fields["Name"], "Name"), _data_type(fields["DataType"])
    return ArrayArgument(name, dtype, shape, role, low, high, contents)  # type: ignore[arg-type]  # a role, by the check


def _amount(entry: Node, names: Iterable[str]) -> Expression:
    """An expression for a number that cannot be negative. An expression without names is checked at once."""
    expression = _expression(entry, names)
    if not expression.names:
        expression.number({}, least=0)
    return expression


def _expression(entry: Node, names: Iterable[str]) -> Expression:
    expression = Expression.parse(entry.plain("an expression"), entry.location)
    if unknown := sorted(expression.names - set(names)):
        raise entry.wrong(f"{expression.text!r} names {', '.join(unknown)}", f"here may stand {', '.join(names)}")
    return expression


def _data_type(entry: Node) -> str:
    dtype = entry.word("DataType")
    if dtype not in DATA_TYPES:
        raise entry.wrong(f"DataType cannot be {dtype}", f"give one of {', '.join(DATA_TYPES)}")
    return dtype


def _reference(entry: Node) -> tuple[str, str]:
    """The file and the function that `Reference` names; no file for `first` and a function of the calling program."""
    name = entry.word("Reference")
    if name == FIRST or (name.startswith(PREFIX) and _KEY.match(name.removeprefix(PREFIX))):
        return "", name
    file, colon, function = name.rpartition(":")
    if not colon or not file.endswith(".py") or not _IDENTIFIER.match(function):
        raise entry.wrong(f"Reference cannot be {name}", f"name a Python function: file.py:function, or {FIRST}")
    return file, function


def _new_name(entry: Node, what: str) -> str:
    return _identifier(entry.word(what), entry.location, what)


def _identifier(name: str, location: str, what: str) -> str:
    if not _IDENTIFIER.match(name) or name in RESERVED:
        remedy = f"use letters, digits and _, and none of {', '.join(RESERVED)}"
        raise UserError(location, f"{what} cannot be called {name!r}", remedy)
    return name


def _refuse_twice(entry: Node, names: Iterable[str]) -> None:
    earlier: set[str] = set()
    for name in names:
        if name in earlier:
            raise entry.wrong(f"{name} names two things", "give each a name of its own")
        earlier.add(name)
