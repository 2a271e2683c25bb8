"""The settings of a whole tuning file: `GlobalParameters` and `LibraryLogic`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tunesmith.problems import Key, Mistakes, Node, shortened, unknown_key
from tunesmith.records import UserError, Value
from tunesmith.search import LARGEST_LISTED, STRATEGIES

from .notes import Notes
from .steps import EXHAUSTIVE, Objective, SearchPlan
from .tensile import ANSWERED_GLOBALS, ANSWERED_LOGIC, IGNORED_GLOBALS, IGNORED_LOGIC

_APART = ("objective", "passes", "strategy", "trials", "budget_minutes")


def _key(name: str, takes: str, doc: str, default: Value | None = None, choices: tuple[Value, ...] = ()) -> Any:
    """A dataclass field that a key of the file sets."""
    return field(default=default, metadata={"key": Key(name, takes, doc, default, choices)})


@dataclass(frozen=True, slots=True)
class GlobalParameters:
    """How the whole file is measured. None stands for a missing key, so that the bench's default holds.

    All fields except those in `_APART` have the names of the bench policy's fields.
    """

    objective: Objective = _key(
        "StepObjective",
        "one of",
        "How the winner of a step is chosen over several sizes: geomean (geometric mean over the sizes of the step's "
        "best time over the time, a missing size counting zero), max (highest FLOP/s at any size, as in Tensile), "
        "total_time (smallest sum of times), worst (best at the size that suits it least). Weights of a "
        "list of problems count in geomean and total_time.",
        Objective.GEOMEAN,
        tuple(Objective),
    )
    passes: int = _key(
        "Passes",
        "positive integer",
        "How often the benchmark steps of a phase are carried out, one after the other: a later pass settles each "
        "parameter again under the winners of all the others. What was measured is not measured again.",
        1,
    )
    strategy: str = _key(
        "SearchStrategy",
        "one of",
        "What a lineage measures of a step's legal combinations: exhaustive (all of them; of more than "
        f"{LARGEST_LISTED:,} combinations, in random order), random (a random sample), surrogate (what a model that "
        "learns from the times so far holds for fast; `pip install 'tunesmith[search]'`). Samples begin with what the "
        "lineage holds. Joins and the final phase measure everything.",
        EXHAUSTIVE,
        tuple(STRATEGIES),
    )
    trials: int | None = _key(
        "SearchTrials",
        "positive integer",
        "The most combinations that a lineage measures in a step, for random and surrogate. If absent, random measures "
        "all that is legal and surrogate a tenth of it, at least 24.",
    )
    budget_minutes: float | None = _key(
        "BudgetMinutes", "positive number", "Wall time that the run should keep to; none if absent."
    )
    noise: float | None = _key(
        "Noise",
        "positive number",
        "Half-width of the 95 % interval of the median, relative to the median, at which sampling stops.",
    )
    cold: bool | None = _key(
        "ColdCache",
        "truth value",
        "Rotate operands so that the last-level cache holds none of them; False measures warm.",
    )
    minimum_samples: int | None = _key(
        "MinimumSamples",
        "positive integer",
        "Fewest times of one cell; three if it takes several times as long as the best.",
    )
    maximum_samples: int | None = _key("MaximumSamples", "positive integer", "Most times of one cell.")
    sampling_seconds: float | None = _key("SamplingSeconds", "positive number", "Longest that one cell is sampled.")
    warm_up_seconds: float | None = _key("WarmUpSeconds", "positive number", "Longest warm-up before a cell is timed.")
    confirm_blocks: int | None = _key(
        "ConfirmBlocks", "positive integer", "Interleaved blocks in which finalists are measured again."
    )
    timeout_seconds: float | None = _key("TimeoutSeconds", "positive number", "After this a launch counts as hanging.")
    compile_timeout_seconds: float | None = _key(
        "CompileTimeoutSeconds", "positive number", "After this a compilation is given up."
    )
    compile_processes: int | None = _key(
        "CompileProcesses", "natural number", "Processes that compile; 0 lets the bench decide."
    )
    seed: int | None = _key("Seed", "natural number", "Seed of inputs and orders.")

    @property
    def search(self) -> SearchPlan:
        return SearchPlan(self.strategy, self.trials, self.seed or 0)

    def policy(self) -> dict[str, object]:
        """The file's settings for the bench's policy, by the policy's field names."""
        return {name: value for name, value in asdict(self).items() if name not in _APART and value is not None}


@dataclass(frozen=True, slots=True)
class LibraryLogic:
    """The parts of the names of library logic files; "" for a missing key."""

    schedule_name: str = ""
    architecture_name: str = ""

    def file_name(self, type_name: str) -> str:
        """`SCHEDULE_ARCHITECTURE_TYPE.yaml`, without empty parts."""
        parts = (self.schedule_name, self.architecture_name, type_name)
        return "_".join(part for part in parts if part) + ".yaml"


GLOBAL_KEYS: dict[str, Key] = {field.name: field.metadata["key"] for field in fields(GlobalParameters)}

LOGIC_KEYS: dict[str, Key] = {
    "schedule_name": Key("ScheduleName", "word", "Begins the name of the logic's files, as in Tensile."),
    "architecture_name": Key("ArchitectureName", "word", "Stands in the name of the logic's files, before the type."),
}

_IN_FILE_NAMES = re.compile(r"\w[\w.+-]{0,63}", re.ASCII)


def read_globals(node: Node | None, notes: Notes, mistakes: Mistakes) -> GlobalParameters:
    """The correct settings of the node. Adds notes for Tensile's parameters that mean something else or nothing
    here."""
    if node is None or node.is_null:
        return GlobalParameters()
    values = _read(GLOBAL_KEYS, node, "GlobalParameters", ANSWERED_GLOBALS, IGNORED_GLOBALS, notes, mistakes)
    if "objective" in values:
        values["objective"] = Objective(values["objective"])
    settings = GlobalParameters(**values)
    fewest, most = settings.minimum_samples, settings.maximum_samples
    if fewest is not None and most is not None and fewest > most:
        location = node.at("MaximumSamples")
        what = f"MaximumSamples {most} is below MinimumSamples {fewest}"
        mistakes.add(UserError(location, what, "give a larger maximum"))
    is_exhaustive = settings.strategy == EXHAUSTIVE and ("strategy" in values or "SearchStrategy" not in node.places)
    if settings.trials is not None and is_exhaustive:
        what = f"SearchTrials {settings.trials} has no effect"
        reason = f"SearchStrategy {settings.strategy} measures all combinations"
        remedy = "give SearchStrategy: random or surrogate"
        mistakes.add(UserError(node.at("SearchTrials"), f"{what}: {reason}", remedy))
    return settings


def read_logic(node: Node | None, notes: Notes, mistakes: Mistakes) -> LibraryLogic:
    """The correct settings of the node. Names must be fit for the name of a file."""
    if node is None or node.is_null:
        return LibraryLogic()
    values = _read(LOGIC_KEYS, node, "LibraryLogic", ANSWERED_LOGIC, IGNORED_LOGIC, notes, mistakes)
    for attribute, value in values.items():
        name = LOGIC_KEYS[attribute].name
        if not _IN_FILE_NAMES.fullmatch(str(value)):
            what = f"{name} cannot be {shortened(value)}: it stands in the name of a file"
            remedy = "use up to 64 letters, digits, _ . + and -, the first a letter, a digit or _"
            mistakes.add(UserError(node.at(name), what, remedy))
    return LibraryLogic(**values)


def _read(
    keys: Mapping[str, Key],
    node: Node,
    where: str,
    answered: Mapping[str, str],
    ignored: Collection[str],
    notes: Notes,
    mistakes: Mistakes,
) -> dict[str, Any]:
    """The correct values by attribute. Adds notes for keys of Tensile that mean something else or nothing here."""
    present = node.mapping(where)
    for name, instead in answered.items():
        if name in present:
            notes.add(node.at(name), f"{name} is ignored: {instead}")
    if foreign := [name for name in present if name in ignored]:
        notes.add(node.at(foreign[0]), f"keys of {where} that mean nothing here: {', '.join(foreign)}")
    attributes = {key.name: attribute for attribute, key in keys.items()}
    values: dict[str, Any] = {}
    for name in present:
        if name in answered or name in ignored:
            continue
        with mistakes.caught():
            if name not in attributes:
                raise unknown_key(node.at(name), shortened(name), attributes, where)
            attribute = attributes[name]
            values[attribute] = keys[attribute].check(present[name].plain(name), node.at(name))
    return values
