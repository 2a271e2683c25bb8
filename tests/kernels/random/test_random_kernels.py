"""The random kernels against the reference: every form, launch shape, place in memory, offset and seed; and mutants.

PoCL takes about a second to compile one of the 300 programs, on one core, when it has not done so before. So where
thorough tests are selected, what a test looks at is made in processes of their own, as many as there are cores; all
begin when the first is asked for.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

import random_tasks as tasks
from opencl_runner import opencl_device
from random_runner import Shape, fill, mistakes, problem, small, verified, with_scalar
from tunesmith.problems.random import GENERATORS, WIDTHS, GeneratorKind
from tunesmith.records import Problem

pytestmark = pytest.mark.opencl

PSEUDO = [name for name, generator in GENERATORS.items() if generator.kind is not GeneratorKind.QUASI]
OF_KIND = {kind: [name for name, generator in GENERATORS.items() if generator.kind is kind] for kind in GeneratorKind}
Task = tuple[object, ...]


def described(task):
    return "-".join(str(part) for part in task[1:] if isinstance(part, str | int))


def for_tasks(made, thoroughly=None):
    """Each task of `made`; those of `thoroughly` that are not among them only where one asks for thorough tests."""
    rest = [task for task in thoroughly or [] if task not in made]
    also = [pytest.param(task, marks=pytest.mark.thorough) for task in rest]
    return pytest.mark.parametrize("task", [*made, *also], ids=described)


MANY = 100
"""Tasks for which processes of their own are worth their start."""


@pytest.fixture(scope="module")
def found(request):
    """found(task): what a task finds."""
    opencl_device()
    items = [item for item in request.session.items if item.fspath == request.fspath and hasattr(item, "callspec")]
    selected = [item.callspec.params["task"] for item in items if "task" in item.callspec.params]
    if len(selected) < MANY:
        yield lambda task: task[0](*task[1:])
        return
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        futures = {task: pool.submit(*task) for task in selected}  # type: ignore[arg-type]
        yield lambda task: futures[task].result()
        pool.shutdown(cancel_futures=True)


ALL_FORMS = [(g, d, v) for g in GENERATORS for d, types in WIDTHS.items() for v in types]
SOME_FORMS = [form for form in ALL_FORMS if form[0] == "philox4_32_10" or form[1:] == ("uniform", "float")]
"""All of one generator, one of all."""


@for_tasks(
    [(tasks.offered_unoptimised, *form) for form in SOME_FORMS],
    [(tasks.offered_unoptimised, *form) for form in ALL_FORMS],
)
def test_whatever_is_offered_compiles_and_is_verified(task, found):
    """As a tuning run would; by a compiler that leaves out what takes it longest."""
    assert found(task) == []


@pytest.mark.thorough
@for_tasks([(tasks.offered, *form) for form in ALL_FORMS])
def test_whatever_is_offered_is_verified_optimised(task, found):
    assert found(task) == []


FORMS = {
    "philox4_32_10": ("normal", "float"),
    "threefry2_32_20": ("uniform", "unsigned_short"),
    "threefry2_64_20": ("poisson", "unsigned_int"),
    "threefry4_32_20": ("log_normal", "double"),
    "threefry4_64_20": ("uniform", "float"),
    "sobol32": ("log_normal", "float"),
    "sobol64": ("uniform", "unsigned_char"),
    "scrambled_sobol32": ("poisson", "unsigned_int"),
    "scrambled_sobol64": ("normal", "double"),
}
"""One of each generator whose output must not depend on the launch, all distributions and several widths among them."""


EVERY_DRIVER = ("philox4_32_10", "threefry4_64_20", "sobol32", "scrambled_sobol64")
"""Blocks of four words and of eight, points of both lengths."""


@for_tasks(
    [(tasks.under_launches, g, *FORMS[g], 16) for g in EVERY_DRIVER],
    [
        (tasks.under_launches, g, *FORMS[g], 50)
        for g in [*OF_KIND[GeneratorKind.COUNTER], *OF_KIND[GeneratorKind.QUASI]]
    ],
)
def test_numbers_do_not_depend_on_the_launch(task, found):
    """Byte for byte, for shapes at random out of 128 sizes of grids and 3 of work-groups; for the four generators these
    are 12. A mistake of one shape in six is missed by 16 shapes in one case of 18; the thorough run has 50 shapes.
    """
    assert found(task) == []


@for_tasks([(tasks.for_engines, g, "uniform", "float") for g in OF_KIND[GeneratorKind.ENGINE]])
def test_engines_give_what_as_many_give_in_the_reference(task, found):
    assert found(task) == []


EDGES = {
    "philox4_32_10": [("uniform", "unsigned_char"), ("uniform", "half"), ("normal", "float"), ("normal", "double")],
    "threefry2_32_20": [("uniform", "unsigned_short")],
    "threefry2_64_20": [("normal", "half")],
    "threefry4_32_20": [("uniform", "unsigned_long_long")],
    "threefry4_64_20": [("uniform", "unsigned_char"), ("normal", "double")],
    "sobol32": [("uniform", "unsigned_char"), ("uniform", "half")],
    "scrambled_sobol64": [("uniform", "unsigned_short"), ("normal", "double")],
    "lfsr113": [("normal", "float")],
    "mrg31k3p": [("uniform", "unsigned_short")],
    "mrg32k3a": [("normal", "half")],
    "mt19937": [("uniform", "unsigned_char"), ("normal", "double")],
    "mtgp32": [("uniform", "unsigned_char"), ("normal", "float")],
    "xorwow": [("uniform", "unsigned_char"), ("normal", "double")],
}
"""For each way of storing, several widths of vectors."""


@for_tasks(
    [
        (tasks.at_edges, g, *EDGES[g][0], "all" if GENERATORS[g].kind is not GeneratorKind.ENGINE else "some")
        for g in ("philox4_32_10", "threefry4_64_20", "sobol32", "mt19937", "mtgp32", "xorwow")
    ],
    [(tasks.at_edges, g, *form, "all") for g, forms in EDGES.items() for form in forms],
)
def test_any_count_from_any_element_is_right(task, found):
    """0 to 40 values from elements 0 to 7 behind an aligned address; what lies around them stays as it was.

    Engines, which must be seeded for each, give those numbers of values by default that lie beside a power of two.
    """
    assert found(task) == []


@for_tasks([(tasks.offset, g) for g in GENERATORS if GENERATORS[g].skips])
def test_the_beginning_of_a_sequence_is_left_out(task, found):
    """By any number of words: odd ones, across the carry of a counter of 32 bits, and beyond."""
    assert found(task) == []


@for_tasks([(tasks.seeded, g) for g in GENERATORS])
def test_all_kinds_of_seeds_are_right(task, found):
    assert found(task) == []


@for_tasks([(tasks.poisson, g) for g in ("philox4_32_10", "mt19937", "sobol64")])
def test_poisson_numbers_of_any_mean_are_right(task, found):
    assert found(task) == []


@for_tasks([(tasks.continued, g, "normal", "float") for g in OF_KIND[GeneratorKind.ENGINE]])
def test_an_execution_goes_on_where_the_last_one_ended(task, found):
    """Three after one setup, each of whole turns of all engines, give the values of one three times as long."""
    assert found(task) == []


def test_a_launch_of_another_shape_changes_the_sequence_of_engines():
    """So the comparisons above do see the shape."""
    asked = problem("xorwow", count=1000, engines=256)
    assert mistakes(asked, fill(asked, Shape(64, 4))) == []
    assert mistakes(asked, fill(asked, Shape(64, 5))) != []


def rescaled(asked, **scalars):
    return replace(asked, scalars=asked.scalars | scalars)  # type: ignore[arg-type]


def swapped(asked):
    return rescaled(asked, mean=asked.scalars["stddev"], stddev=asked.scalars["mean"])


def longer(more):
    return lambda asked: replace(asked, sizes=(asked.size("N") + more, *asked.sizes[1:]))


def more(name, many=1):
    return lambda asked: rescaled(asked, **{name: asked.scalars[name] + many})  # type: ignore[operator]


def start_moved(plan):
    return with_scalar(plan, 3, lambda start: start + 1)


PHILOX, XORWOW, SOBOL = (
    ("philox4_32_10", "normal", "float"),
    ("xorwow", "uniform", "float"),
    ("sobol32", "uniform", "float"),
)
MUTANTS: dict[str, tuple[tuple[str, str, str], Callable[[Problem], Problem]]] = {
    "philox, another seed": (PHILOX, more("seed")),
    "philox, another high half of the seed": (PHILOX, more("seed", 1 << 32)),
    "philox, a word further": (PHILOX, more("offset")),
    "philox, mean for deviation": (PHILOX, swapped),
    "philox, a value too many": (PHILOX, longer(1)),
    "philox, a value too few": (PHILOX, longer(-1)),
    "philox, a larger mean": (("philox4_32_10", "poisson", "unsigned_int"), more("lambda")),
    "xorwow, another seed": (XORWOW, more("seed")),
    "xorwow, all engines a word further": (XORWOW, more("offset", 256)),
    "xorwow, a value too many": (XORWOW, longer(1)),
    "lfsr113, another seed": (("lfsr113", "uniform", "float"), more("seed")),
    "mt19937, another seed": (("mt19937", "uniform", "float"), more("seed")),
    "mtgp32, another seed": (("mtgp32", "uniform", "float"), more("seed")),
    "sobol32, a point further": (SOBOL, more("offset")),
    "sobol32, a value too many": (SOBOL, longer(1)),
    "sobol32, a value too few": (SOBOL, longer(-1)),
    "scrambled sobol64, another seed": (("scrambled_sobol64", "uniform", "float"), more("seed")),
}


@pytest.mark.parametrize(("form", "mutant"), MUTANTS.values(), ids=MUTANTS)
def test_verification_finds_a_plan_for_another_problem(form, mutant):
    """Each check must find it, that of the sequence's beginning and, where there is one, that of its middle."""
    checks = 1 + GENERATORS[form[0]].skips
    assert len(verified(problem(*form, 3000), small(form[0]), mutant)) == checks


@pytest.mark.parametrize("generator", OF_KIND[GeneratorKind.ENGINE])
def test_verification_finds_engines_that_start_one_further(generator):
    asked = problem(generator, "normal", "double", 3000)
    found = verified(asked, small(generator), patched=start_moved, family=tasks.UNOPTIMISED)
    assert len(found) == 1 + GENERATORS[generator].skips


@pytest.mark.parametrize("generator", [name for name in OF_KIND[GeneratorKind.ENGINE] if GENERATORS[name].skips])
def test_verification_finds_engines_that_nobody_seeded(generator):
    """Of the others the kernels find indices in their states, and what is left in a workspace would end the process."""
    asked = problem(generator, "normal", "double", 3000)
    found = verified(asked, small(generator), patched=lambda plan: replace(plan, setup=()), family=tasks.UNOPTIMISED)
    assert len(found) == 2
