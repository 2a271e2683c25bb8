"""A fitted heuristic's file: round trip, pins, mistakes with their line, and the generated Python function."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quick_yaml import dumped, loaded
from tuned_samples import ORIGIN, products, sample
from tunesmith.models.intensity.fit.comparison import FitSettings
from tunesmith.models.intensity.fit.fitting import fit_cut_points
from tunesmith.models.intensity.fit.heuristic import (
    BucketSeed,
    CutPoint,
    FittedHeuristic,
    MetricRule,
    Question,
    pinned_values,
)
from tunesmith.models.intensity.fit.heuristic_file import dump_heuristic, read_heuristic
from tunesmith.models.intensity.fit.heuristic_python import python_source
from tunesmith.models.intensity.fit.sample import FEATURES
from tunesmith.models.intensity.metrics import METRICS, Product
from tunesmith.records import Configuration, UserError

SEEDS = tuple(
    BucketSeed(Configuration({"MacroTile": (16 << n, 16), "Mode": f'it\'s "{n}"'}), 256.0, n) for n in range(3)
)
CUTS = (CutPoint(1000.5, 900.0, 2000.0), CutPoint(pinned=1e9, fitted=2e9))
HEURISTIC = FittedHeuristic(ORIGIN, 116.9, 104, {"r2": 0.75}, MetricRule("mnk", CUTS), SEEDS)
TREE = replace(HEURISTIC, rule=Question("m", 64.0, 0, Question("waves", 1.5, 1, 2)))


def written(folder, text):
    path = folder / "h.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("heuristic", [HEURISTIC, TREE, replace(HEURISTIC, rule=MetricRule("mn", ()), seeds=SEEDS[:1])])
def test_a_file_gives_its_heuristic_back(tmp_path, heuristic):
    assert read_heuristic(written(tmp_path, dump_heuristic(heuristic))) == heuristic


def test_a_fitted_heuristic_survives_its_file(tmp_path):
    tuned = sample(100)
    fitted = fit_cut_points(tuned, FitSettings(("intensity",), resamples=20), ORIGIN).heuristic
    read = read_heuristic(written(tmp_path, dump_heuristic(fitted)))
    assert [read.bucket(product) for product in tuned.products] == [
        fitted.bucket(product) for product in tuned.products
    ]


def test_a_pin_that_a_person_writes_counts(tmp_path):
    text = dump_heuristic(HEURISTIC).replace("{fitted: 1000.5,", "{pinned: 12.0, fitted: 1000.5,")
    read = read_heuristic(written(tmp_path, text))
    assert isinstance(read.rule, MetricRule)
    assert pinned_values(read.rule) == (12.0, 1e9)
    assert [read.bucket(Product(1, 1, k)) for k in (11, 12, 10**9)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tunesmith-heuristic: 1", "tunesmith-heuristic: 2", "h.yaml:5: format 2"),
        ("metric: mnk", "metric: mkn", "metric cannot be mkn; give one of mn, mnk"),
        ("{fitted: 1000.5,", "{pinned: 3.0e+9,", "cut point 1e+09 does not lie above the one before it, 3e+09"),
        ("{fitted: 1000.5,", "{pinned: -1.0,", "pinned cannot be -1.0; give a number of at least 0"),
        ("{fitted: 1000.5, low: 900.0, high: 2000.0}", "{low: 1.0}", "a cut point without a value"),
        ("{fitted: 1000.5,", "{fittet: 1000.5,", "has no fittet; did you mean fitted?"),
        ("units: 104", "units: 0", "units cannot be 0; give a whole number from 1"),
        ("ridge: 116.9", "ridge: .nan", "ridge cannot be nan"),
        ("- {fitted: 1000.5, low: 900.0, high: 2000.0}\n", "", "1 cut points for 3 buckets"),
        ("products: 200", "product: 200", "fitted-on has no product; did you mean products?"),
        ("MacroTile: [16, 16]", "MacroTile: .inf", "inf in a configuration"),
        ("buckets:", "bucket:", "did you mean buckets?"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path, old, new, message):
    text = dump_heuristic(HEURISTIC)
    assert old in text
    with pytest.raises(UserError, match=r"h\.yaml:\d+: ") as caught:
        read_heuristic(written(tmp_path, text.replace(old, new, 1)))
    assert message in str(caught.value)


@pytest.mark.parametrize("numbers", [(0, 1, 1), (0, 1, 3), (0, 1, -1)])
def test_a_tree_leads_to_every_bucket_once(tmp_path, numbers):
    first, second, third = numbers
    text = dump_heuristic(replace(TREE, rule=Question("m", 64.0, first, Question("n", 1.5, second, third))))
    with pytest.raises(UserError):
        read_heuristic(written(tmp_path, text))


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2.5, math.nan, math.inf, 10**30, 10**400, "", "x", "mnk", [], [1], {}, {"a": 1}, [[1]],
)  # fmt: skip


def mutated(value, generator):
    """The value with a random part of it changed, removed or duplicated."""
    if isinstance(value, dict) and value and generator.random() < 0.85:
        key = generator.choice(list(value))
        match generator.randrange(8):
            case 0:
                return {name: item for name, item in value.items() if name != key}
            case 1:
                return {**value, str(generator.choice(VALUES)): value[key]}
            case _:
                return {**value, key: mutated(value[key], generator)}
    if isinstance(value, list) and value and generator.random() < 0.85:
        index = generator.randrange(len(value))
        match generator.randrange(6):
            case 0:
                return value[:index] + value[index + 1 :]
            case 1:
                return [*value, value[index]]
            case _:
                return [*value[:index], mutated(value[index], generator), *value[index + 1 :]]
    return generator.choice(VALUES)


def test_a_damaged_file_raises_nothing_but_our_error(tmp_path):
    """If a damaged file can still be read, heuristic and generated function give every product the same
    configuration."""
    generator = random.Random("heuristics")
    sizes = products(20, seed=1)
    outcomes = {"read": 0, "refused": 0}
    mistakes: list[UserError] = []
    for number in range(300):
        text = dump_heuristic(HEURISTIC if number % 2 else TREE)
        match number % 3:
            case 0:
                text = text[: generator.randrange(len(text))]
            case 1:
                text = dumped(mutated(loaded(text), generator), allow_unicode=True)
            case _:
                start = generator.randrange(len(text))
                text = (
                    text[:start] + generator.choice("{}[]:-,'\"#&*!%@\t\n0a") + text[start + generator.randrange(3) :]
                )
        try:
            read = read_heuristic(written(tmp_path, text))
        except UserError as error:
            mistakes += error.errors
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert agrees(read, sizes)
    assert min(outcomes.values()) > 30
    assert all(mistake.remedy and mistake.location.startswith(str(tmp_path)) for mistake in mistakes)


def agrees(heuristic, sizes):
    """Whether the generated function returns the heuristic's configuration for each product."""
    names: dict[str, Any] = {}
    exec(compile(python_source(heuristic), "generated.py", "exec"), names)
    for product in sizes:
        configuration = names["configuration_for"](
            product.m, product.n, product.k, product.batch, product.operand_bytes, product.result_bytes
        )
        values = {name: _listed(value) for name, value in heuristic.seed(product).configuration.items()}
        if configuration != values:
            return False
    return True


def _listed(value):
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("feature", FEATURES)
def test_the_generated_function_agrees_on_random_products(feature):
    """The two cut points are values of products, where < and <= differ."""
    generator = np.random.default_rng(7)
    sizes = [
        replace(product, batch=int(generator.integers(1, 5)), operand_bytes=float(generator.choice([1.0, 2.0, 4.0])))
        for product in products(400, seed=2)
    ]
    values = sorted({FEATURES[feature](product, HEURISTIC.ridge, HEURISTIC.units) for product in sizes})
    first, second = values[len(values) // 3], values[2 * len(values) // 3]
    tree = replace(HEURISTIC, rule=Question(feature, first, 0, Question(feature, second, 1, 2)))
    assert {tree.bucket(product) for product in sizes} == {0, 1, 2}
    assert agrees(tree, sizes)
    if feature in METRICS:
        line = replace(HEURISTIC, rule=MetricRule(feature, (CutPoint(first), CutPoint(second))))
        assert agrees(line, sizes)
        assert [line.bucket(product) for product in sizes] == [tree.bucket(product) for product in sizes]


def test_the_function_marks_what_a_person_pinned():
    text = python_source(HEURISTIC)
    assert "if mnk < 1000.5:\n" in text
    assert "if mnk < 1000000000.0:  # pinned by a person\n" in text
