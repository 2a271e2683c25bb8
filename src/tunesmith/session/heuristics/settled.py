"""A tuning file whose lineages are settled: it measures the solutions of a choice model on a list of products.

The steps of a tuning find out how a lineage computes best. The model's solutions have been through them, so that a list
of products that would teach the model more is measured without any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunesmith.kernels import has_kernel_of, tuning_space
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.problems.yaml import flow
from tunesmith.records import ProblemType, Solution, thaw

NOISE, SAMPLING_SECONDS, WARM_UP_SECONDS = 0.02, 0.05, 0.02
"""Times of a few percent are enough for a model, and leave room for many products."""

HEAD = f"""\
# Measures the solutions of a choice model on a list of products; by `tunesmith heuristics learn --file`. Each line of
# Groups is a solution. Parameters that its kernel does not have are at their defaults.

# Times of a few percent are enough for a model, and leave room for many products.
GlobalParameters: {{Noise: {NOISE}, SamplingSeconds: {SAMPLING_SECONDS}, WarmUpSeconds: {WARM_UP_SECONDS}}}

BenchmarkProblems:
"""


def settled_file(model: ChoiceModel, rows: Sequence[ListedGemm], sizes: str) -> str:
    """The text of the file, with the model's problem types of which there are `rows`. `sizes` is the path of the list
    of these rows, from the file's folder."""
    kinds = [kind for kind in map(gemm_type_named, model.types) if kind and any(row.fits(kind) for row in rows)]
    problems = ((kind, list(filter(has_kernel_of, model.solutions_of(kind)))) for kind in kinds)
    return HEAD + "".join(
        f"{line}\n" for kind, solutions in problems if solutions for line in _problem(kind, solutions, sizes)
    )


def _problem(kind: ProblemType, solutions: Sequence[Solution], sizes: str) -> Iterator[str]:
    """The lines of a problem type with its solutions, which all set the same parameters.

    A solution gets the default of a parameter that its kernel does not have. The defaults of the parameters that pick a
    kernel pick none.
    """
    names = sorted({name for solution in solutions for name in solution.configuration})
    defaults = tuning_space(kind, hidden=True).defaults.only(names)
    yield f"- - {flow({'OperationType': kind.operation, **kind.fields})}"
    yield "  - ForkParameters:"
    yield "    - Groups:"
    for number, solution in enumerate(solutions):
        settings = {name: thaw(value) for name, value in (defaults | solution.configuration).items()}
        yield f"      {'  -' if number else '- -'} {flow(settings)}"
    yield "    BenchmarkFinalParameters:"
    yield f"    - ProblemSizes: [{flow({'File': sizes})}]"
