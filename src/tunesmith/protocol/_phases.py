"""A size group of a tuning file, its phases turned into steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.problems import Node, shown, unknown_key
from tunesmith.records import Configuration, Problem, UserError, Value
from tunesmith.search import MOST_WHOLE, STRATEGIES
from tunesmith.spaces import Combinations, Space

from ._entries import Entry, EntryReader, Factor, items
from ._notes import Notes
from ._settings import GlobalParameters
from ._sizes import COMMON_DEFAULT, FINAL_DEFAULT, Sized, SizeReader
from ._steps import Benchmark, Final, Fork, Join, Phase, Phases, Step

INITIAL = "InitialSolutionParameters"
VARYING = (Phase.COMMON, Phase.FORK, Phase.BENCHMARK_FORK, Phase.BENCHMARK_JOIN)
PHASE_KEYS = (INITIAL, *(phase.value for phase in Phase))


@dataclass(frozen=True)
class GroupReader:
    """Reads the size groups of one problem type. `derived` are the names that a join may use beside parameters."""

    sizes: SizeReader
    space: Space
    derived: frozenset[str]
    settings: GlobalParameters
    notes: Notes

    def read(self, node: Node, group: int) -> Phases:
        """Raises UserError for whatever is wrong with the group."""
        keys = node.mapping("a size group")
        for name in keys:
            if name not in PHASE_KEYS:
                raise unknown_key(node.at(name), name, PHASE_KEYS, "a size group")
        reader = EntryReader(self.space, self.notes)
        entries = {phase: reader.entries(phase, keys.get(phase)) for phase in VARYING}
        factors = [factor for phase in VARYING for entry in entries[phase] for factor in entry.factors]
        _refuse_repeated(factors)
        single = {name: value for factor in factors if not factor.varies for name, value in factor.settings[0].items()}
        initial = self._initial(reader, keys.get(INITIAL))
        self._say_ignored(initial, single, factors, entries)
        return Phases(
            problem_type=self.sizes.problem_type,
            group=group,
            start=self.space.defaults | {name: value for name, (value, _) in initial.items()} | single,
            steps=tuple(self._steps(node, keys, entries)),
            tuned=tuple(_varied_values(factors)),
            objective=self.settings.objective,
            search=self.settings.search,
        )

    def _initial(self, reader: EntryReader, node: Node | None) -> dict[str, tuple[Value, str]]:
        """Value and place of each initial parameter."""
        found: dict[str, tuple[Value, str]] = {}
        for entry in reader.entries(INITIAL, node):
            if entry.sizes:
                raise UserError(entry.sizes.place, f"{INITIAL} has no sizes", f"put them into {Phase.COMMON}")
            for factor in entry.factors:
                (name,) = factor.names
                if factor.varies:
                    what = f"{name} starts with {len(factor.settings)} values"
                    raise UserError(
                        factor.place, what, f"give one here, and the others to {Phase.COMMON} or a later phase"
                    )
                if name in found:
                    raise _twice(name, factor.place, found[name][1])
                found[name] = factor.settings[0][name], factor.place
        return found

    def _say_ignored(
        self,
        initial: Mapping[str, tuple[Value, str]],
        single: Mapping[str, Value],
        factors: Sequence[Factor],
        entries: Mapping[Phase, Sequence[Entry]],
    ) -> None:
        """An initial value that no solution will ever have."""
        places = {name: factor.place for factor in factors for name in factor.names}
        forked = {name for entry in entries[Phase.FORK] for factor in entry.varied for name in factor.names}
        measured_before_the_fork = any(entry.varied for entry in entries[Phase.COMMON])
        for name, (value, place) in initial.items():
            ignored = f"{INITIAL}: {name} {shown(value)} is ignored"
            if name in single and single[name] != value:
                self.notes.say(place, f"{ignored}: it is {shown(single[name])} throughout ({places[name]})")
            elif name in forked and not measured_before_the_fork:
                self.notes.say(place, f"{ignored}: {name} is forked before anything is measured ({places[name]})")

    def _steps(self, node: Node, keys: Mapping[str, Node], entries: Mapping[Phase, Sequence[Entry]]) -> Iterator[Step]:
        current = _SizesInForce(self.sizes, self.notes, node.place)
        yield from self._benchmarks(Phase.COMMON, entries, current)
        forks = entries[Phase.FORK]
        for entry in forks:
            current.change(entry.sizes)
        if forked := [factor for entry in forks for factor in entry.varied]:
            yield self._fork(forked, node.at(Phase.FORK))
        yield from self._benchmarks(Phase.BENCHMARK_FORK, entries, current)
        names = self._join_names(keys.get(Phase.JOIN), entries)
        if names is not None and forked:
            yield Join(names, *current.use())
        elif names is not None:
            self.notes.say_once(node.at(Phase.JOIN), f"{Phase.JOIN} has nothing to join: no parameter is forked")
        yield from self._benchmarks(Phase.BENCHMARK_JOIN, entries, current)
        current.leave()
        yield Final(self._final_problems(node, keys.get(Phase.FINAL)))

    def _fork(self, forked: Sequence[Factor], place: str) -> Fork:
        """Each choice becomes a lineage, so there may not be too many."""
        choices = _combinations(forked)
        if choices.count > MOST_WHOLE:
            what = f"{choices.count:,} combinations are forked, of {', '.join(choices.names)}"
            raise UserError(place, what, f"keep it to {MOST_WHOLE:,}: tune some of them in a step of their own")
        return Fork(choices)

    def _benchmarks(
        self, phase: Phase, entries: Mapping[Phase, Sequence[Entry]], current: _SizesInForce
    ) -> Iterator[Step]:
        """One step for each dict that varies something, in every pass; a later pass keeps each step's sizes."""
        steps = []
        for entry in entries[phase]:
            current.change(entry.sizes)
            if entry.varied:
                choices = _combinations(entry.varied)
                self._say_long(choices, entry.place)
                steps.append(Benchmark(phase, choices, *current.use()))
        for _ in range(self.settings.passes):
            yield from steps

    def _say_long(self, choices: Combinations, place: str) -> None:
        search = self.settings.search
        most = STRATEGIES[search.strategy].count(choices.count, search.trials)
        if most > MOST_WHOLE:
            what = f"{choices.count:,} combinations in one step, of which the search measures up to {most:,}"
            self.notes.say(place, f"{what}; SearchStrategy and SearchTrials make it fewer")

    def _join_names(self, node: Node | None, entries: Mapping[Phase, Sequence[Entry]]) -> tuple[str, ...] | None:
        """Each name once, () for an empty list, None where all lineages are kept."""
        if node is None or node.is_null:
            return None
        forked = [name for entry in entries[Phase.FORK] for factor in entry.factors for name in factor.names]
        legal = [*forked, *sorted(self.derived.difference(forked))]
        names = []
        for item in node.content if isinstance(node.content, tuple) else (node,):
            if not isinstance(item.content, str):
                what = f"{Phase.JOIN} lists names"
                raise UserError(item.place, what, f"write a list of names, such as [{', '.join(legal[:2])}]")
            if item.content not in legal:
                remedy = f"give forked parameters or derived values: {', '.join(legal)}" if legal else "fork one first"
                raise UserError(item.place, f"there is no {shown(item.content)} to join over", remedy)
            names.append(item.content)
        return tuple(dict.fromkeys(names))

    def _final_problems(self, node: Node, final: Node | None) -> tuple[Problem, ...]:
        sizes = None
        for item in items(Phase.FINAL, final):
            for name, value in item.mapping(f"an item of {Phase.FINAL}").items():
                if name != "ProblemSizes":
                    what = f"{Phase.FINAL} varies nothing, it has only ProblemSizes"
                    raise UserError(item.at(name), what, f"put {shown(name)} into {Phase.BENCHMARK_JOIN}")
                if sizes is not None:
                    raise _twice("ProblemSizes", item.at(name), sizes.place)
                sizes = value
        if sizes is not None:
            return self.sizes.read(sizes)[0]  # each size has a winner of its own, whatever it weighs
        problems, text = self.sizes.default(FINAL_DEFAULT)
        self.notes.say_once(node.at(Phase.FINAL), f"the final step has no ProblemSizes: {text} is measured")
        return problems


class _SizesInForce:
    """The problems that hold at a place of the file, while its phases are gone through in order.

    Reads what it is given at once, so that a mistake is found, and says when nothing was measured on it.
    """

    def __init__(self, reader: SizeReader, notes: Notes, group: str) -> None:
        self._reader, self._notes, self._group = reader, notes, group
        self._sizes: Sized | None = None
        self._unused = ""

    def change(self, sizes: Node | None) -> None:
        if sizes is None:
            return
        self.leave()
        self._sizes, self._unused = self._reader.read(sizes), sizes.place

    def use(self) -> Sized:
        self._unused = ""
        if self._sizes is None:
            problems, text = self._reader.default(COMMON_DEFAULT)
            self._sizes = problems, {}
            self._notes.say_once(
                self._group, f"the steps before the final one have no ProblemSizes: {text} is measured"
            )
        return self._sizes

    def leave(self) -> None:
        if self._unused:
            self._notes.say(self._unused, "nothing is measured on these ProblemSizes")


def _combinations(factors: Iterable[Factor]) -> Combinations:
    return Combinations(tuple(factor.settings for factor in factors))


def _varied_values(factors: Sequence[Factor]) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Each parameter that some step varies, with its values in the order of the file."""
    for factor in factors:
        for name in factor.names if factor.varies else ():
            chosen = dict.fromkeys(Configuration({name: setting[name]}) for setting in factor.settings)
            yield name, tuple(one[name] for one in chosen)


def _refuse_repeated(factors: Sequence[Factor]) -> None:
    places: dict[str, str] = {}
    for factor in factors:
        for name in factor.names:
            if name in places:
                raise _twice(name, factor.place, places[name])
            places[name] = factor.place


def _twice(name: str, place: str, first: str) -> UserError:
    return UserError(place, f"{name} is given twice (first at {first})", "keep one of the two")
