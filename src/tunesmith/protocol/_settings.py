"""What holds for a whole tuning file: `GlobalParameters` and `LibraryLogic`."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tunesmith.problems import Key, shown, unknown_key
from tunesmith.records import UserError

from ._notes import Notes
from ._steps import Objective
from ._tensile import ANSWERED_GLOBALS, IGNORED_GLOBALS, IGNORED_LOGIC
from ._yaml import Node


@dataclass(frozen=True, slots=True)
class GlobalParameters:
    """How the whole file is measured; None where the file says nothing and the bench's default holds.

    Fields but `objective` and `budget_minutes` are named as those of the bench's policy.
    """

    objective: Objective = Objective.GEOMEAN
    budget_minutes: float | None = None
    noise: float | None = None
    cold: bool | None = None
    minimum_samples: int | None = None
    maximum_samples: int | None = None
    sampling_seconds: float | None = None
    warm_up_seconds: float | None = None
    confirm_blocks: int | None = None
    timeout_seconds: float | None = None
    compile_timeout_seconds: float | None = None
    compile_processes: int | None = None
    seed: int | None = None

    def policy(self) -> dict[str, object]:
        """What the file says about measuring, by the name of the policy's field."""
        apart = ("objective", "budget_minutes")
        return {name: value for name, value in asdict(self).items() if name not in apart and value is not None}


@dataclass(frozen=True, slots=True)
class LibraryLogic:
    """How the library logic is labelled; empty where the file says nothing and the device's own facts are used."""

    schedule_name: str = ""
    architecture_name: str = ""
    device_names: tuple[str, ...] = ()


GLOBAL_KEYS: dict[str, Key] = {
    "objective": Key(
        "StepObjective",
        "one of",
        "How the winner of a step is chosen over several sizes: geomean (geometric mean over the sizes of the step's "
        "best time over the time, a missing size counting zero), max (highest FLOP/s at any size, as in Tensile), "
        "total_time (smallest sum of times), worst (best at the size that suits it least).",
        Objective.GEOMEAN.value,
        tuple(each.value for each in Objective),
    ),
    "budget_minutes": Key("BudgetMinutes", "positive number", "Wall time that the run should keep to; none if absent."),
    "noise": Key(
        "Noise",
        "positive number",
        "Half-width of the 95 % interval of the median, relative to the median, at which sampling stops.",
    ),
    "cold": Key(
        "ColdCache",
        "truth value",
        "Rotate operands so that the last-level cache holds none of them; False measures warm.",
    ),
    "minimum_samples": Key("MinimumSamples", "positive integer", "Fewest times of one cell."),
    "maximum_samples": Key("MaximumSamples", "positive integer", "Most times of one cell."),
    "sampling_seconds": Key("SamplingSeconds", "positive number", "Longest that one cell is sampled."),
    "warm_up_seconds": Key("WarmUpSeconds", "positive number", "Longest warm-up before a cell is timed."),
    "confirm_blocks": Key(
        "ConfirmBlocks", "positive integer", "Interleaved blocks in which finalists are measured again."
    ),
    "timeout_seconds": Key("TimeoutSeconds", "positive number", "After this a launch counts as hanging."),
    "compile_timeout_seconds": Key("CompileTimeoutSeconds", "positive number", "After this a compilation is given up."),
    "compile_processes": Key("CompileProcesses", "natural number", "Processes that compile; 0 lets the bench decide."),
    "seed": Key("Seed", "natural number", "Seed of inputs and orders."),
}

LOGIC_KEYS: dict[str, Key] = {
    "schedule_name": Key("ScheduleName", "word", "Name of the logic's schedule, which begins its file's name."),
    "architecture_name": Key("ArchitectureName", "word", "Architecture that the logic is filed under."),
    "device_names": Key("DeviceNames", "list of words", "Devices that the logic holds for."),
}


def read_globals(node: Node | None, notes: Notes) -> GlobalParameters:
    """Tensile's parameters that mean something else or nothing here are said to be ignored."""
    if node is None or node.is_null:
        return GlobalParameters()
    given = dict(node.mapping("GlobalParameters"))
    ignored = [name for name in given if name in IGNORED_GLOBALS]
    for name, instead in ANSWERED_GLOBALS.items():
        if name in given:
            notes.say(node.at(name), f"{name} is ignored: {instead}")
    if ignored:
        notes.say(node.at(ignored[0]), f"GlobalParameters of Tensile's that mean nothing here: {', '.join(ignored)}")
    known = {name: value for name, value in given.items() if name not in ANSWERED_GLOBALS and name not in ignored}
    values: dict[str, object] = _read(GLOBAL_KEYS, node, known, "GlobalParameters")
    if "objective" in values:
        values["objective"] = Objective(str(values["objective"]))
    made = GlobalParameters(**values)  # type: ignore[arg-type]  # each checked by its key
    fewest, most = made.minimum_samples, made.maximum_samples
    if fewest is not None and most is not None and fewest > most:
        place = node.at("MaximumSamples")
        raise UserError(place, f"MaximumSamples {most} is below MinimumSamples {fewest}", "give a larger maximum")
    return made


def read_logic(node: Node | None, notes: Notes) -> LibraryLogic:
    if node is None or node.is_null:
        return LibraryLogic()
    given = dict(node.mapping("LibraryLogic"))
    ignored = [name for name in given if name in IGNORED_LOGIC]
    if ignored:
        notes.say(node.at(ignored[0]), f"LibraryLogic of Tensile's that means nothing here: {', '.join(ignored)}")
    known = {name: value for name, value in given.items() if name not in ignored}
    return LibraryLogic(**_read(LOGIC_KEYS, node, known, "LibraryLogic"))  # type: ignore[arg-type]  # checked by its key


def _read(keys: dict[str, Key], node: Node, given: dict[str, Node], where: str) -> dict[str, object]:
    attributes = {key.name: attribute for attribute, key in keys.items()}
    values: dict[str, object] = {}
    for name, value in given.items():
        if name not in attributes:
            raise unknown_key(node.at(name), shown(name), attributes, where)
        attribute = attributes[name]
        values[attribute] = keys[attribute].check(value.plain(name), node.at(name))
    return values
