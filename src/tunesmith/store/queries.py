"""Parts of the store's queries: which measurements count, and measurements with their documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, String, case, func, literal, or_, select

from tunesmith.records import Outcome

from .entry import AGAIN, RECHECK
from .schema import TEXT, documents, folder_keys, measurements

_LATER = measurements.alias("later")
BASE_ROUND, _LATER_BASE = (func.rtrim(table.c.round, AGAIN, type_=String) for table in (measurements, _LATER))
IS_CURRENT = ~(
    select(_LATER.c.id)
    .where(
        _LATER.c.key == measurements.c.key,
        _LATER.c.id > measurements.c.id,
        _LATER.c.round.endswith(AGAIN),
        or_(_LATER_BASE == BASE_ROUND, _LATER_BASE + RECHECK == BASE_ROUND),
    )
    .correlate(measurements)
    .exists()
)
"""The condition that no later row replaced a row. Measuring a round again also replaces its second result."""

_SOLUTION, _PROBLEM, _TARGET = (documents.alias(name) for name in ("solution_text", "problem_text", "target_text"))


def filters(
    problem_type: str = "", round_prefix: str = "", outcomes: Collection[Outcome] = (), folder: str = ""
) -> list[ColumnElement[bool]]:
    """Conditions on current measurements; an empty argument is no condition. `folder` is the id of a folder whose runs
    asked for them."""
    columns = measurements.c
    conditions: list[ColumnElement[bool]] = [IS_CURRENT, *of_folder(folder)]
    if problem_type:
        conditions.append(columns.problem_type == problem_type)
    if round_prefix:
        conditions.append(func.substr(columns.round, 1, len(round_prefix)) == round_prefix)
    if outcomes:
        conditions.append(columns.outcome.in_([outcome.value for outcome in outcomes]))
    return conditions


def of_folder(folder: str) -> list[ColumnElement[bool]]:
    """The condition that a folder's runs asked for a measurement; none for an empty id."""
    keys = select(folder_keys.c.key).where(folder_keys.c.folder == folder)
    return [measurements.c.key.in_(keys)] if folder else []


def rows(missing: Collection[str] = ()) -> Select[Any]:
    """Rows of measurements, with an empty text in place of the columns that an older store is missing."""
    return select(*_own(missing))


def whole_rows(conditions: Sequence[ColumnElement[bool]], missing: Collection[str] = ()) -> Select[Any]:
    """Measurements with their documents' texts in place of the digests."""
    texts = {"solution": _SOLUTION, "problem": _PROBLEM, "target": _TARGET}
    own = [column for column in _own(missing) if column.name not in texts]
    query = select(*own, *(text.c.text.label(name) for name, text in texts.items())).where(*conditions)
    for name, text in texts.items():
        query = query.join(text, measurements.c[name] == text.c.digest)
    return query


def device_counts(folder: str, missing: Collection[str]) -> Select[Any]:
    """The number of current measurements, and of those that ran, by target and host."""
    host = next(column for column in _own(missing) if column.name == "host")
    ran = func.sum(case((measurements.c.outcome == Outcome.OK.value, 1), else_=0))
    query = select(_TARGET.c.text.label("target"), host, func.count().label("count"), ran.label("ran"))
    query = query.join(_TARGET, measurements.c.target == _TARGET.c.digest).where(*filters(folder=folder))
    return query.select_from(measurements).group_by(
        _TARGET.c.text, *([] if "host" in missing else [measurements.c.host])
    )


def _own(missing: Collection[str]) -> list[Any]:
    return [literal("", TEXT).label(column.name) if column.name in missing else column for column in measurements.c]
