"""A tuning file whose lineages are settled: it measures the solutions of a choice model on a list of products.

The steps of a tuning find out how a lineage computes best. The model's solutions have been through them, so that a list
of products that would teach the model more is measured without any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tunesmith.kernels import tuning_space
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.problems import beginning_of
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.problems.yaml import flow
from tunesmith.records import ProblemType, Solution, thaw

HEAD = """\
# Measures the solutions of a choice model at other products, by `tunesmith heuristics learn --file`. A line of Groups
# is a solution. Parameters that its kernel does not have are at their defaults.

# Many products that are timed quickly teach a model more than a few that are timed well.
GlobalParameters: {Noise: 0.02, SamplingSeconds: 0.05, WarmUpSeconds: 0.02}

BenchmarkProblems:
"""


def is_settled_file(file: Path) -> bool:
    """Whether a file begins as `settled_file` does."""
    beginning = HEAD.partition("\n")[0].encode()
    return beginning_of(file, "YAML", len(beginning)) == beginning


def settled_file(model: ChoiceModel, sizes: str) -> str:
    """The text of the file. `sizes` is the path of the list, from the file's folder."""
    kinds = filter(None, map(gemm_type_named, model.types))
    return HEAD + "".join(f"{line}\n" for kind in kinds for line in _problem(kind, model.solutions_of(kind), sizes))


def _problem(kind: ProblemType, solutions: Sequence[Solution], sizes: str) -> Iterator[str]:
    """The lines of a problem type with its solutions, in which every solution sets the same parameters."""
    names = sorted({name for solution in solutions for name in solution.configuration})
    # Where two families differ in a default, it is the one that means neither.
    defaults = tuning_space(kind, hidden=True).defaults.only(names)
    yield f"- - {flow({'OperationType': kind.operation, **kind.fields})}"
    yield "  - ForkParameters:"
    yield "    - Groups:"
    for number, solution in enumerate(solutions):
        settings = {name: thaw(value) for name, value in (defaults | solution.configuration).items()}
        yield f"      {'  -' if number else '- -'} {flow(settings)}"
    yield "    BenchmarkFinalParameters:"
    yield f"    - ProblemSizes: [{flow({'File': sizes})}]"
