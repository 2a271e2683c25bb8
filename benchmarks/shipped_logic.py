"""How long does the logic in the package take to load, and how long a choice by it?

    python benchmarks/shipped_logic.py [--repeats 7] [--json FILE]

No device is needed: the library believes that the device of each file is there, and nothing is launched. For each file
of `src/tunesmith/logics/`, medians of: opening all files that serve its device (`open`), and the first choice for one
of its types after that (`first`), which makes the type's logic and reads the file's choice model (`model`), each in
this process after its modules were imported. `compiled` says whether compiled code walks the model's trees (`pip
install ./native`). A choice is timed cold (a size that the library has not seen, without the legality checks: `choice`,
and with them: `select`) and again for the same size (`again`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tunesmith.kernels import KERNELS
from tunesmith.library._shipped import LoadedLogic, shipped_logics
from tunesmith.library.launch._predicted import PredictedChoices
from tunesmith.logic import Choice, Logic, read_shipped, read_shipped_model, shipped_files
from tunesmith.models.choice.model_file import model_of
from tunesmith.models.choice.trees import compiled_trees
from tunesmith.records import Problem, ProblemType, Target

SIZES = 60
"""Choices that are timed, for each problem type."""


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def legal(choices: PredictedChoices, logic: Logic, problem: Problem, target: Target) -> Choice | None:
    """The first legal choice, as the library finds it."""
    for choice in choices.candidates(logic, problem):
        kernel, config = KERNELS[choice.solution.kernel], choice.solution.configuration
        if not any(kernel.rejections(config, problem.type, target)) and not any(
            kernel.rejections_for(config, problem, target)
        ):
            return choice
    return None


def choice_times(path: Path, logics: Sequence[Logic], target: Target) -> dict[str, float]:
    """Medians over sizes that were drawn log-uniformly."""
    random = np.random.default_rng(0)
    times: dict[str, list[float]] = {"choice": [], "select": [], "again": []}
    for logic in logics:
        kind = logic.document.problem_type
        choices = PredictedChoices([path])
        drawn = np.exp2(random.uniform(3, 13, (2 * SIZES + 1, len(kind.indices)))).astype(int)
        problems = [Problem(kind, tuple(map(int, sizes))) for sizes in drawn]
        legal(choices, logic, problems[0], target)  # reads the model
        for first, second in zip(problems[1::2], problems[2::2], strict=True):
            times["choice"].append(milliseconds(lambda: next(choices.candidates(logic, first)), 1))  # noqa: B023
            times["again"].append(milliseconds(lambda: next(choices.candidates(logic, first)), 1))  # noqa: B023
            times["select"].append(milliseconds(lambda: legal(choices, logic, second, target), 1))  # noqa: B023
    return {name: statistics.median(found) for name, found in times.items()}


def first_choice(logics: Mapping[ProblemType, LoadedLogic], name: str) -> Choice:
    """The choice at a size that was not measured, by logics that were just opened, for the type with this name."""
    kind = next(kind for kind in logics if kind.name == name)
    choices = PredictedChoices([file for file, _ in logics.values()])
    return next(choices.candidates(logics[kind][1], Problem(kind, tuple(999 for _ in kind.indices))))


def first_choices(target: Target, name: str, repeats: int) -> float:
    """Median milliseconds of `first_choice`, each time by files that were opened anew."""
    opened = (shipped_logics(target, print) for _ in range(repeats))
    return statistics.median(milliseconds(lambda: first_choice(logics, name), 1) for logics in opened)  # noqa: B023


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for path in shipped_files():
        shipped = read_shipped(path)
        model = model_of(read_shipped_model(path), str(path))
        row = {
            "file": path.name,
            "compiled": compiled_trees() is not None,
            "bytes": path.stat().st_size,
            "solutions": len(model.solutions),
            "sizes": sum(len(logic.document.rows) for logic in shipped.logics),
            "open": milliseconds(lambda: shipped_logics(model.target, print), options.repeats),  # noqa: B023
            "first": first_choices(model.target, shipped.head.types[-1], options.repeats),
            "model": milliseconds(lambda: model_of(read_shipped_model(path), ""), options.repeats),  # noqa: B023
            **choice_times(path, shipped.logics, model.target),
        }
        found.append(row)
        shown = (
            f"{name} {value:.3f} ms" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
        )
        print(", ".join(shown))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
