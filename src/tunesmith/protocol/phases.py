"""Reads a size group of a tuning file: turns its phases into steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.problems import Mistakes, Node, most_similar, shortened, unknown_key
from tunesmith.records import Configuration, Problem, ProblemType, UserError, Value
from tunesmith.search import LARGEST_LISTED, STRATEGIES
from tunesmith.spaces import Combinations, Space

from .entries import GROUPS, SIZES, EntryReader, Factor, PhaseEntry
from .notes import Notes
from .settings import GlobalParameters
from .sizes import COMMON_DEFAULT, FINAL_DEFAULT, SizeReader, WeightedProblems
from .steps import Benchmark, Final, Fork, Join, Phase, Phases, Step

INITIAL = "InitialSolutionParameters"
VARYING = (Phase.COMMON, Phase.FORK, Phase.BENCHMARK_FORK, Phase.BENCHMARK_JOIN, Phase.FINAL)
PHASE_KEYS = (INITIAL, *(phase.value for phase in Phase))

Families = Callable[[ProblemType, Mapping[str, Sequence[Value]]], Mapping[str, Collection[str]]]
"""A function of a problem type and the values that each parameter may have. It gives the kernel families that these
values choose, with the parameters of each family."""


@dataclass(frozen=True)
class GroupReader:
    """Reads the size groups of one problem type. `derived` are the names that a join may use besides parameters.

    Mistakes are added to `mistakes`. The rest is read as if the wrong parts were missing.
    """

    sizes: SizeReader
    space: Space
    derived: frozenset[str]
    families: Families
    settings: GlobalParameters
    notes: Notes
    mistakes: Mistakes

    def read(self, node: Node, group: int) -> Phases:
        """The group without its wrong parts. Raises UserError if the node is no mapping."""
        keys = node.mapping("a size group")
        for name in keys:
            if name not in PHASE_KEYS:
                self.mistakes.add(self._misplaced(node, name))
        reader = EntryReader(self.space, self.notes, self.mistakes)
        entries = {phase: reader.entries(phase, keys.get(phase)) for phase in VARYING}
        factors = [factor for phase in VARYING for entry in entries[phase] for factor in entry.factors]
        self._refuse_repeated(factors)
        single = {name: value for factor in factors if not factor.varies for name, value in factor.settings[0].items()}
        initial = self._initial(reader, keys.get(INITIAL))
        self._note_ignored(initial, single, factors, entries)
        phases = Phases(
            problem_type=self.sizes.problem_type,
            group=group,
            start=self.space.defaults | {name: value for name, (value, _) in initial.items()} | single,
            steps=tuple(self._steps(node, keys, entries)),
            tuned=tuple(_varied_values(factors)),
            objective=self.settings.objective,
            search=self.settings.search,
        )
        locations = {name: factor.location for factor in factors for name in factor.names}
        self._note_without_effect(phases, {**{name: location for name, (_, location) in initial.items()}, **locations})
        return phases

    def _misplaced(self, node: Node, name: str) -> UserError:
        """The mistake for a key of a group that is no phase."""
        if most_similar(name, (*PHASE_KEYS, SIZES)) == SIZES:
            what = f"{name} stands outside of the phases"
            return UserError(
                node.at(name), what, f"put it into {Phase.FINAL} or an earlier phase, as `- {SIZES}: [...]`"
            )
        if name in self.space:
            what = f"{name} stands outside of the phases"
            return UserError(node.at(name), what, f"put it into one of {', '.join((INITIAL, *VARYING))}")
        return unknown_key(node.at(name), name, PHASE_KEYS, "a size group")

    def _refuse_repeated(self, factors: Sequence[Factor]) -> None:
        locations: dict[str, str] = {}
        for factor in factors:
            for name in factor.names:
                if name in locations:
                    self.mistakes.add(_twice(name, factor.location, locations[name]))
                locations.setdefault(name, factor.location)

    def _initial(self, reader: EntryReader, node: Node | None) -> dict[str, tuple[Value, str]]:
        """The value and the location of each initial parameter."""
        values: dict[str, tuple[Value, str]] = {}
        for entry in reader.entries(INITIAL, node):
            if entry.sizes:
                what = f"{INITIAL} has no sizes"
                self.mistakes.add(UserError(entry.sizes.location, what, f"put them into {Phase.COMMON}"))
            for factor in entry.factors:
                (name,) = factor.names
                if factor.varies:
                    what = f"{name} starts with {len(factor.settings)} values"
                    remedy = f"give one here, and the others to {Phase.COMMON} or a later phase"
                    self.mistakes.add(UserError(factor.location, what, remedy))
                if name in values:
                    self.mistakes.add(_twice(name, factor.location, values[name][1]))
                values.setdefault(name, (factor.settings[0][name], factor.location))
        return values

    def _note_ignored(
        self,
        initial: Mapping[str, tuple[Value, str]],
        single: Mapping[str, Value],
        factors: Sequence[Factor],
        entries: Mapping[Phase, Sequence[PhaseEntry]],
    ) -> None:
        """Add a note for each initial value that no solution will have."""
        locations = {name: factor.location for factor in factors for name in factor.names}
        forked = {name for entry in entries[Phase.FORK] for factor in entry.varied for name in factor.names}
        measured_before_the_fork = any(entry.varied for entry in entries[Phase.COMMON])
        for name, (value, location) in initial.items():
            ignored = f"{INITIAL}: {name} {shortened(value)} is ignored"
            if name in single and single[name] != value:
                self.notes.add(location, f"{ignored}: it is {shortened(single[name])} throughout ({locations[name]})")
            elif name in forked and not measured_before_the_fork:
                self.notes.add(location, f"{ignored}: {name} is forked before anything is measured ({locations[name]})")

    def _note_without_effect(self, phases: Phases, locations: Mapping[str, str]) -> None:
        """Add a note for each parameter that none of the families has which the file's values may choose."""
        families = self.families(phases.problem_type, _values_in_use(phases))
        if not families:
            return
        listed = ", ".join(families)
        verb = "has" if len(families) == 1 else "have"
        for name, location in locations.items():
            if not any(name in parameters for parameters in families.values()):
                what = f"{name} is ignored: {listed} {verb} no such parameter, so its values make no difference"
                self.notes.add_once(location, what)

    def _steps(
        self, node: Node, keys: Mapping[str, Node], entries: Mapping[Phase, Sequence[PhaseEntry]]
    ) -> Iterator[Step]:
        current_sizes = _CurrentSizes(self.sizes, self.notes, self.mistakes, node.location)
        yield from self._benchmarks(Phase.COMMON, entries, current_sizes)
        forks = entries[Phase.FORK]
        for entry in forks:
            current_sizes.change(entry.sizes)
        if forked := [factor for entry in forks for factor in entry.varied]:
            yield Fork(self._all_of(forked, node.at(Phase.FORK), "forked"))
        yield from self._benchmarks(Phase.BENCHMARK_FORK, entries, current_sizes)
        names = None
        with self.mistakes.caught():
            names = self._join_names(keys.get(Phase.JOIN), keys.get(Phase.FORK))
        if names is not None and forked:
            yield Join(names, *current_sizes.use())
        elif names is not None:
            self.notes.add_once(node.at(Phase.JOIN), f"{Phase.JOIN} has nothing to join: no parameter is forked")
        yield from self._benchmarks(Phase.BENCHMARK_JOIN, entries, current_sizes)
        current_sizes.leave()
        varied = [factor for entry in entries[Phase.FINAL] for factor in entry.varied]
        choices = self._all_of(varied, node.at(Phase.FINAL), "measured on every size")
        yield Final(self._final_problems(node, entries[Phase.FINAL]), choices)

    def _all_of(self, factors: Sequence[Factor], location: str, what: str) -> Combinations:
        """All combinations of the factors, which are all forked or all measured. Adds a mistake if there are too
        many."""
        choices = _combinations(factors)
        if choices.count > LARGEST_LISTED:
            what = f"{choices.count:,} combinations are {what}, of {', '.join(choices.names)}"
            remedy = f"keep it to {LARGEST_LISTED:,}: tune some of them in a step of their own"
            self.mistakes.add(UserError(location, what, remedy))
        return choices

    def _benchmarks(
        self, phase: Phase, entries: Mapping[Phase, Sequence[PhaseEntry]], current_sizes: _CurrentSizes
    ) -> Iterator[Step]:
        """One step for each dict that varies something, in every pass. A later pass keeps each step's sizes."""
        steps = []
        for entry in entries[phase]:
            current_sizes.change(entry.sizes)
            if entry.varied:
                choices = _combinations(entry.varied)
                self._note_long(choices, entry.location)
                steps.append(Benchmark(phase, choices, *current_sizes.use()))
        for _ in range(self.settings.passes):
            yield from steps

    def _note_long(self, choices: Combinations, location: str) -> None:
        search = self.settings.search
        most = STRATEGIES[search.strategy].count(choices.count, search.trials)
        if most > LARGEST_LISTED:
            what = f"{choices.count:,} combinations in one step, of which the search measures up to {most:,}"
            self.notes.add(location, f"{what}; SearchStrategy and SearchTrials make it fewer")

    def _join_names(self, node: Node | None, fork: Node | None) -> tuple[str, ...] | None:
        """The distinct names that a join uses; () for an empty list, None if all lineages are kept."""
        if node is None or node.is_null:
            return None
        forked = [name for name in _names_in(fork) if name in self.space]
        legal = [*forked, *sorted(self.derived.difference(forked))]
        names = []
        for item in node.content if isinstance(node.content, tuple) else (node,):
            if not isinstance(item.content, str):
                what = f"{Phase.JOIN} lists names"
                raise UserError(item.location, what, f"write a list of names, such as [{', '.join(legal[:2])}]")
            if item.content not in legal:
                remedy = f"give forked parameters or derived values: {', '.join(legal)}" if legal else "fork one first"
                raise UserError(item.location, f"there is no {shortened(item.content)} to join over", remedy)
            names.append(item.content)
        return tuple(dict.fromkeys(names))

    def _final_problems(self, node: Node, entries: Sequence[PhaseEntry]) -> tuple[Problem, ...]:
        listed_sizes = [entry.sizes for entry in entries if entry.sizes]
        for sizes in listed_sizes[1:]:
            self.mistakes.add(_twice(SIZES, sizes.location, listed_sizes[0].location))
        if listed_sizes:
            with self.mistakes.caught():
                return self.sizes.read(listed_sizes[0])[0]  # each size has a winner of its own, whatever it weighs
            return ()
        problems, text = self.sizes.default(FINAL_DEFAULT)
        self.notes.add_once(node.at(Phase.FINAL), f"the final step has no ProblemSizes: {text} is measured")
        return problems


class _CurrentSizes:
    """The problems that hold at the current position, while the phases of a file are read in order.

    ProblemSizes are read as soon as they are given, so that mistakes are found. A note tells of ProblemSizes on which
    nothing is measured.
    """

    def __init__(self, reader: SizeReader, notes: Notes, mistakes: Mistakes, group: str) -> None:
        self._reader, self._notes, self._mistakes, self._group = reader, notes, mistakes, group
        self._sizes: WeightedProblems | None = None
        self._unused = ""

    def change(self, sizes: Node | None) -> None:
        if sizes is None:
            return
        self.leave()
        self._sizes, self._unused = ((), {}), sizes.location
        with self._mistakes.caught():
            self._sizes = self._reader.read(sizes)

    def use(self) -> WeightedProblems:
        self._unused = ""
        if self._sizes is None:
            problems, text = self._reader.default(COMMON_DEFAULT)
            self._sizes = problems, {}
            self._notes.add_once(
                self._group, f"the steps before the final one have no ProblemSizes: {text} is measured"
            )
        return self._sizes

    def leave(self) -> None:
        if self._unused:
            self._notes.add(self._unused, "nothing is measured on these ProblemSizes")


def _combinations(factors: Iterable[Factor]) -> Combinations:
    return Combinations(tuple(factor.settings for factor in factors))


def _varied_values(factors: Sequence[Factor]) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Each parameter that some step varies, with its values in the file's order."""
    for factor in factors:
        for name in factor.names if factor.varies else ():
            chosen = dict.fromkeys(Configuration({name: setting[name]}) for setting in factor.settings)
            yield name, tuple(setting[name] for setting in chosen)


def _names_in(fork: Node | None) -> Iterator[str]:
    """The parameters that a fork names, whether their values are right or not."""
    listed = fork.content if fork is not None and isinstance(fork.content, tuple) else (fork,)
    for item in listed:
        for name, value in item.content.items() if item is not None and isinstance(item.content, dict) else ():
            if name != GROUPS:
                yield name
            elif isinstance(value.content, tuple):
                for group in value.content:
                    yield from _names_in(group)


def _values_in_use(phases: Phases) -> dict[str, list[Value]]:
    """The values that each parameter has in any measurement."""
    values: dict[str, list[Value]] = {name: [value] for name, value in phases.start.items()}
    settled: set[str] = set()
    is_measured = False
    for step in phases.steps:
        if isinstance(step, Join):
            continue
        for name in step.choices.names:
            # The values before the first measurement of the group are never measured.
            earlier = values[name] if is_measured or name in settled else []
            values[name] = [*earlier, *step.choices.values(name)]
        settled.update(step.choices.names)
        is_measured |= isinstance(step, Benchmark)
    return values


def _twice(name: str, location: str, first: str) -> UserError:
    return UserError(location, f"{name} is given twice (first at {first})", "keep one of the two")
