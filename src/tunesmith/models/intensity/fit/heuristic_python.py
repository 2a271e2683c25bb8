"""Writes a fitted heuristic as a readable Python function that does not depend on tunesmith."""

from __future__ import annotations

from tunesmith.records import printable, thaw

from .heuristic import FittedHeuristic, MetricRule, Question

_STEPS = {
    "mn": "mn = m * n",
    "mnk": "mnk = mn * k",
    "intensity": "intensity = 2 * mnk / (mn + n * k + m * k)",
    "intensity_of_bytes": (
        "intensity_of_bytes = 2.0 * mnk * batch / (batch * (operand_bytes * (m + n) * k + result_bytes * mn))"
    ),
    "ridges": "ridges = intensity_of_bytes / {ridge!r}",
    "waves": "waves = -(-m // 128) * -(-n // 128) * batch / {units}",
}
"""The line that computes each feature from the sizes and other features, with the same rounding as `METRICS`. A feature
follows those that it needs."""
_NEEDS = {"mnk": "mn", "intensity": "mnk", "ridges": "intensity_of_bytes", "intensity_of_bytes": "mnk"}


def python_source(heuristic: FittedHeuristic) -> str:
    """The text of a module with one function, `configuration_for`, that returns a product's configuration as a dict."""
    origin, rule = heuristic.origin, heuristic.rule
    used = [rule.metric] if isinstance(rule, MetricRule) else sorted(set(_features(rule)))
    sizes = f"operand_bytes={origin.operand_bytes!r}, result_bytes={origin.result_bytes!r}"
    body = _cut_point_lines(heuristic, rule) if isinstance(rule, MetricRule) else _question_lines(heuristic, rule, 1)
    lines = [
        f'"""Configurations by size, fitted by tunesmith {_plain(origin.tunesmith)} on {_plain(origin.date)}.',
        "",
        f"Fitted to {origin.products} products for {_plain(origin.device)}, {_plain(origin.data_type)}.",
        '"""',
        "",
        "",
        f"def configuration_for(m, n, k, batch=1, {sizes}):",
        '    """The configuration for `batch` products of m x k by k x n; bytes are those of an element."""',
        *(f"    {line}" for line in _steps(used, heuristic)),
        *body,
    ]
    return "\n".join(lines) + "\n"


def _cut_point_lines(heuristic: FittedHeuristic, rule: MetricRule) -> list[str]:
    lines = []
    for cut, seed in zip(rule.cut_points, heuristic.seeds, strict=False):
        pinned = "" if cut.pinned is None else "  # pinned by a person"
        lines += [f"    if {rule.metric} < {cut.value!r}:{pinned}", f"        return {_dict(seed.configuration)}"]
    return [*lines, f"    return {_dict(heuristic.seeds[-1].configuration)}"]


def _question_lines(heuristic: FittedHeuristic, question: Question | int, depth: int) -> list[str]:
    indent = "    " * depth
    if isinstance(question, int):
        return [f"{indent}return {_dict(heuristic.seeds[question].configuration)}"]
    return [
        f"{indent}if {question.feature} < {question.cut!r}:",
        *_question_lines(heuristic, question.below, depth + 1),
        *_question_lines(heuristic, question.beyond, depth),
    ]


def _steps(features: list[str], heuristic: FittedHeuristic) -> list[str]:
    """The lines that compute these features, each once and after the features that it needs."""
    needed = set(features)
    while missing := {_NEEDS[name] for name in needed if name in _NEEDS} - needed:
        needed |= missing
    return [
        line.format(ridge=heuristic.ridge, units=heuristic.units) for name, line in _STEPS.items() if name in needed
    ]


def _features(question: Question | int) -> list[str]:
    if isinstance(question, int):
        return []
    return [question.feature, *_features(question.below), *_features(question.beyond)]


def _dict(configuration: object) -> str:
    values = dict(configuration)  # type: ignore[call-overload]  # a mapping of names to values
    return repr({name: thaw(value) for name, value in values.items()})


def _plain(text: str) -> str:
    """The text without characters that would end a docstring or begin an escape."""
    return "".join(character for character in printable(text) if character not in '"\\')
