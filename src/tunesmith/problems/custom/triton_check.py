"""Checks of a description with a Triton source: whether the description and the jit function fit each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.problems.keys import is_integer, most_similar
from tunesmith.problems.mistakes import Mistakes
from tunesmith.problems.yaml import Node
from tunesmith.records import UserError
from tunesmith.spaces.expressions import Expression

from .description import FLOATS, LIMITS, ArrayArgument, Description, LocalMemoryArgument, ValueArgument
from .launches import launch_nodes
from .triton_source import TRITON, TritonFunction, TritonParameter, triton_functions

NUM_WARPS, NUM_STAGES, NUM_CTAS, MAXNREG = "num_warps", "num_stages", "num_ctas", "maxnreg"

_POWERS_OF_TWO = (1, 2, 4, 8, 16, 32, 64)
_IS_ALLOWED: Mapping[str, tuple[Callable[[int], bool], str]] = {
    NUM_WARPS: (lambda value: value in _POWERS_OF_TWO, "a power of two up to 64"),
    NUM_STAGES: (lambda value: value > 0, "a whole number from 1"),
    NUM_CTAS: (lambda value: value in _POWERS_OF_TWO[:4], "a power of two up to 8, as clusters are on every device"),
    MAXNREG: (lambda value: value >= 0, "a whole number of registers, or 0 for no limit"),
}
"""For each of Triton's options, which whole numbers it takes, also in words."""

OPTIONS = tuple(_IS_ALLOWED)
"""Described parameters with these names are options of Triton's compiler."""


def check_triton(description: Description, root: Node) -> None:
    """Raise UserError for all that is wrong with a description in Triton, and for what only Triton can do without.

    `root` is the description's file. Only the text of the Triton file is read; it is not run.
    """
    fields, mistakes = root.mapping("the description of a kernel"), Mistakes()
    if TRITON not in description.sources:
        if "DivisibleBy16" in fields:
            raise fields["DivisibleBy16"].wrong("DivisibleBy16 is for a source in Triton", "leave DivisibleBy16 out")
    else:
        whole = _DescribedTriton(description, fields, fields)
        for error in whole.mistakes():
            mistakes.add(error)
    for launch, nodes in zip(description.launches, launch_nodes(fields), strict=True):
        if not launch.work_group and set(description.sources) != {TRITON}:
            what = "the description of a kernel has no WorkGroup"
            where = root if nodes is fields else nodes["Entry"]
            mistakes.add(where.wrong(what, "only a kernel in nothing but Triton needs none"))
    mistakes.tell()


@dataclass(frozen=True, slots=True)
class _DescribedTriton:
    """A description with the nodes of its file, or of one of its launches. The methods from `_keys_without_meaning` to
    `_unused` each give the mistakes of one kind."""

    description: Description
    fields: Mapping[str, Node]
    """The keys of the launch, and else of the description."""
    top: Mapping[str, Node]
    """The keys of the whole description."""

    def mistakes(self) -> Iterator[UserError]:
        launches = [
            _DescribedTriton(description, nodes, self.fields)
            for description, nodes in zip(self.description.single_launches, launch_nodes(self.fields), strict=True)
        ]
        for launch in launches:
            if set(self.description.sources) == {TRITON}:
                yield from launch._keys_without_meaning()
        yield from self._options()
        yield from self._promises()
        functions = []
        for launch in launches:
            try:
                function = launch._function()
            except UserError as error:
                yield error
                continue
            functions.append(function)
            yield from launch._decorators(function)
            yield from launch._constexprs(function)
            yield from launch._arguments(function)
        if len(functions) == len(launches):
            yield from self._unused(functions)

    def _keys_without_meaning(self) -> Iterator[UserError]:
        """Keys that say something about other languages only."""
        own = "Triton allocates local memory itself"
        if "LocalMemory" in self.fields:
            yield self.fields["LocalMemory"].wrong(own, "leave LocalMemory out")
        for argument, node in self._described_arguments():
            if isinstance(argument, LocalMemoryArgument):
                yield node.wrong(own, f"leave the argument {argument.name} out")
        if self.description.launches[0].in_items:
            remedy = "count Triton's programs: {WorkGroups: [..]}"
            yield self.fields["Grid"].wrong("a program in Triton has no work-items to count", remedy)

    def _options(self) -> Iterator[UserError]:
        """`Options`, which Triton's compiler cannot take, and values that its own options cannot have."""
        if self.description.sources[TRITON].options:
            named = " or ".join(OPTIONS)
            yield self.fields["Options"].wrong(
                "Triton's compiler has no command line",
                f"name Options of the other languages only; parameters called {named} are options of Triton's",
            )
        for parameter in self.description.parameters:
            is_allowed, kind = _IS_ALLOWED.get(parameter.name, (lambda value: True, ""))
            for value in parameter.values if kind else ():
                if not is_integer(value) or not is_allowed(value):
                    yield self._parameter_error(parameter.name, f"{parameter.name} cannot be {value}", f"give {kind}")

    def _promises(self) -> Iterator[UserError]:
        """Names of `DivisibleBy16` that are no whole numbers among the arguments."""
        numbers = [
            argument.name
            for argument in self.description.arguments
            if isinstance(argument, ValueArgument) and argument.dtype not in FLOATS
        ]
        for name in self.description.divisible_by_16:
            if name not in numbers:
                remedy = f"it can name {', '.join(numbers)}" if numbers else "leave DivisibleBy16 out"
                yield self.fields["DivisibleBy16"].wrong(f"{name} is no whole number among the Arguments", remedy)

    def _decorators(self, function: TritonFunction) -> Iterator[UserError]:
        entry, name = self.fields["Entry"], f"{function.name} ({self._line(function.line)})"
        if not any(_is_jit(decorator) for decorator in function.decorators):
            yield entry.wrong(f"{name} is no jit function", "write @triton.jit above it")
        for decorator, line in function.decorators.items():
            if not _is_jit(decorator):
                remedy = "remove the decorator, and list what it chooses from under Parameters"
                yield entry.wrong(f"@{decorator} ({self._line(line)}) hides the jit function {function.name}", remedy)
        if function.variadic:
            yield entry.wrong(f"{name} takes {function.variadic}", "give each argument a parameter of its own")

    def _constexprs(self, function: TritonFunction) -> Iterator[UserError]:
        """Constants that get no value, or a value that is not known when the program is compiled."""
        arguments = {argument.name: (argument, node) for argument, node in self._described_arguments()}
        described = self._described_parameters()
        for parameter in function.constexprs(described):
            argument, node = arguments.get(parameter.name, (None, None))
            if argument and node and parameter.name in described:
                yield node.wrong(f"{parameter.name} is an argument and a parameter", "rename one of them")
            elif argument and node:
                yield from self._constant_argument(argument, node, parameter)
            elif parameter.name not in described and parameter.default is None:
                remedy = f"add {parameter.name} to Parameters, or to Arguments with a Value that names no size"
                what = f"nothing gives the constexpr {parameter.name} of {function.name} ({self._line(parameter.line)})"
                yield self.fields["Entry"].wrong(what, remedy)

    def _constant_argument(
        self, argument: ArrayArgument | ValueArgument | LocalMemoryArgument, node: Node, parameter: TritonParameter
    ) -> Iterator[UserError]:
        name, line = argument.name, self._line(parameter.line)
        if not isinstance(argument, ValueArgument):
            yield node.wrong(f"{name} is a constexpr ({line}), which cannot be memory", "remove tl.constexpr there")
        elif sizes := sorted(argument.value.names & {*self.description.sizes, *LIMITS}):
            yield node.wrong(
                f"{name} is a constexpr ({line}) and depends on {', '.join(sizes)}: each value needs its own program",
                f"remove tl.constexpr there, or make {name} a parameter, with a constraint that names {sizes[0]}",
            )
        elif name in self.description.divisible_by_16:
            what = f"{name} is a constexpr ({line}), of which Triton knows all divisors"
            yield self.fields["DivisibleBy16"].wrong(what, f"take {name} out of DivisibleBy16")

    def _arguments(self, function: TritonFunction) -> Iterator[UserError]:
        """Arguments that the function lacks, that the description lacks, or whose order differs."""
        constants = {parameter.name for parameter in function.constexprs(self._described_parameters())}
        takes = [parameter for parameter in function.parameters if parameter.name not in constants]
        names = [parameter.name for parameter in takes]
        nodes = {
            argument.name: node
            for argument, node in self._described_arguments()
            if not isinstance(argument, LocalMemoryArgument) and argument.name not in constants
        }
        function_takes = f"{function.name} ({self._line(function.line)}) takes {', '.join(names) or 'no arguments'}"
        similar_names = set()
        for name, node in nodes.items():
            if name not in names:
                similar = most_similar(name, [other for other in names if other not in nodes])
                similar_names.add(similar)
                remedy = f"did you mean {similar}?" if similar else function_takes
                yield node.wrong(f"{function.name} ({self._line(function.line)}) has no parameter {name}", remedy)
        for parameter in takes:
            if parameter.name not in nodes and parameter.name not in similar_names:
                what = f"no argument is called {parameter.name}, as {function.name} ({self._line(parameter.line)}) asks"
                remedy = f"add {parameter.name} to Arguments, or annotate it with tl.constexpr and add it to Parameters"
                yield self.top["Arguments"].wrong(what, remedy)
        if set(nodes) == set(names) and list(nodes) != names:
            first = next(name for name, other in zip(nodes, names, strict=True) if name != other)
            what = f"the arguments have another order than the parameters, from {first} on"
            yield nodes[first].wrong(what, f"{function_takes}, in this order")

    def _unused(self, functions: Sequence[TritonFunction]) -> Iterator[UserError]:
        """Parameters without any effect. If there are other languages, their sources may use all parameters."""
        if set(self.description.sources) != {TRITON}:
            return
        used = {*OPTIONS, *_names(_launched(self.description)), *_names(_numbers(self.description).values())}
        used |= {parameter.name for function in functions for parameter in function.parameters}
        for parameter in self.description.parameters:
            if parameter.name not in used:
                where = f"{functions[0].name} ({self._line(functions[0].line)})"
                what = f"nothing uses {parameter.name}, and {where} has no parameter of that name"
                remedy = f"add `{parameter.name}: tl.constexpr` to the function, or remove {parameter.name}"
                yield self._parameter_error(parameter.name, what, remedy)

    def _function(self) -> TritonFunction:
        """The function of the text that `Entry` names. Raises UserError if there is none."""
        source, entry = self.description.sources[TRITON], self.fields["Entry"]
        try:
            functions = triton_functions(source.text)
        except SyntaxError as error:
            remedy = "correct the Python there"
            raise self._source_node().wrong(f"{self._line(error.lineno or 1)}: {error.msg}", remedy) from error
        (name,) = self.description.entries
        if name not in functions:
            similar = most_similar(name, functions)
            there = f"it has {', '.join(functions) or 'no functions'}"
            what = f"{source.file} has no function {name} at its top level"
            raise entry.wrong(what, f"did you mean {similar}?" if similar else there)
        return functions[name]

    def _described_arguments(self) -> Iterator[tuple[ArrayArgument | ValueArgument | LocalMemoryArgument, Node]]:
        nodes = {_name_of(node): node for node in self.top["Arguments"].sequence("Arguments")}
        return ((argument, nodes[argument.name]) for argument in self.description.arguments)

    def _described_parameters(self) -> frozenset[str]:
        return frozenset(parameter.name for parameter in self.description.parameters)

    def _source_node(self) -> Node:
        source = self.fields["Source"]
        return source.content[TRITON] if isinstance(source.content, dict) else source

    def _parameter_error(self, name: str, what: str, remedy: str) -> UserError:
        return UserError(self.fields["Parameters"].at(name), what, remedy)

    def _line(self, line: int) -> str:
        return f"{self.description.sources[TRITON].file}:{line}"


def _name_of(argument: Node) -> str:
    return argument.mapping("an argument")["Name"].word("Name")


def triton_entry(description: Description) -> TritonFunction:
    """The function that the only launch of a description names in the Triton file."""
    (entry,) = description.entries
    return triton_functions(description.sources[TRITON].text)[entry]


def launch_parameters(description: Description) -> frozenset[str]:
    """The described parameters on which only launches depend, so that all their values have the same programs."""
    described = frozenset(parameter.name for parameter in description.parameters)
    in_programs, at_launch = {*OPTIONS}, set(_names(_launched(description)))
    for launch in description.single_launches:
        constants = {parameter.name for parameter in triton_entry(launch).constexprs(described)}
        numbers = _numbers(launch)
        in_programs |= {*constants, *_names(numbers[name] for name in numbers.keys() & constants)}
        at_launch |= _names(numbers[name] for name in numbers.keys() - constants)
    return (described & at_launch) - in_programs


def _launched(description: Description) -> tuple[Expression, ...]:
    """The expressions that say how many programs a launch has, and how much scratch memory there is."""
    launches = description.launches
    groups = (
        extent for launch in launches for extent in (*launch.grid, *(launch.work_group if launch.in_items else ()))
    )
    return (*groups, *(extent for array in description.scratch for extent in array.shape))


def _numbers(description: Description) -> dict[str, Expression]:
    return {item.name: item.value for item in description.arguments if isinstance(item, ValueArgument)}


def _names(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(name for expression in expressions for name in expression.names)


def _is_jit(decorator: str) -> bool:
    return decorator.rpartition(".")[2] == "jit"
