"""The key of a call of an autotuned kernel, the nearest of several keys, and the pruning of configurations.

A key is made as `triton.autotune` makes it: the values of the key arguments, then the data types of all tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunesmith.records import UserError

POWER_OF_TWO = "power_of_two"
"""The name of the rule that rounds numbers of a key up to a power of two."""

Bucket = Callable[[Any], Any]
"""Gives the value that stands for a number of a key. Numbers with the same value share a choice."""

KeyValue = int | float | str | bool


@dataclass(frozen=True)
class TuningKey:
    """`values` of the key arguments that the call has, and the data types of its tensors."""

    values: tuple[KeyValue, ...]
    dtypes: tuple[str, ...]

    @staticmethod
    def of(names: Sequence[str], arguments: Mapping[str, Any], bucket: Bucket | None = None) -> TuningKey:
        """The key of a call with these arguments, in the kernel's order. `names` are the key arguments."""
        values = (arguments[name] for name in names if name in arguments)
        dtypes = (str(argument.dtype) for argument in arguments.values() if hasattr(argument, "dtype"))
        return TuningKey(tuple(_key_value(value, bucket) for value in values), tuple(dtypes))

    @property
    def as_tuple(self) -> tuple[KeyValue, ...]:
        """The key in Triton's form."""
        return (*self.values, *self.dtypes)

    def distance(self, other: TuningKey) -> float:
        """The sum of the differences of the numbers' logarithms; infinite if anything else differs."""
        if self.dtypes != other.dtypes or len(self.values) != len(other.values):
            return math.inf
        return sum(_distance(own, others) for own, others in zip(self.values, other.values, strict=True))


def nearest(key: TuningKey, kept: Iterable[TuningKey]) -> TuningKey | None:
    """The nearest of the kept keys; None if none has the same data types and the same words."""
    listed = list(kept)
    best = min(listed, key=key.distance, default=None)
    return best if best is not None and math.isfinite(key.distance(best)) else None


def bucket_of(rule: Bucket | str | None, location: str) -> Bucket | None:
    """The rule that `bucket=` names. Raises UserError for an unknown name."""
    if rule is None or callable(rule):
        return rule
    if rule == POWER_OF_TWO:
        return _next_power_of_two
    raise UserError(location, f"bucket cannot be {rule!r}", f'give a function of a number, or "{POWER_OF_TWO}"')


def _next_power_of_two(value: float) -> float:
    return 1 << (math.ceil(value) - 1).bit_length() if value > 0 else value


def _key_value(value: Any, bucket: Bucket | None) -> KeyValue:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        bucketed = bucket(value) if bucket else value
        return bucketed if isinstance(bucketed, int | float | str) else str(bucketed)
    return f"{type(value).__name__} {tuple(value.shape)}" if hasattr(value, "shape") else str(value)


def _distance(value: KeyValue, other: KeyValue) -> float:
    if isinstance(value, str | bool) or isinstance(other, str | bool):
        return 0.0 if value == other else math.inf
    if (value < 0) != (other < 0):
        return math.inf
    return abs(math.log1p(abs(value)) - math.log1p(abs(other)))


@dataclass(frozen=True)
class Pruning:
    """Which configurations of the list are measured for a call: the functions of Triton's `prune_configs_by`."""

    early: Callable[..., Sequence[Any]] | None = None
    model: Callable[..., float] | None = None
    top: float | int = 1.0

    @staticmethod
    def of(functions: Mapping[str, Any] | None) -> Pruning:
        named = functions or {}
        return Pruning(named.get("early_config_prune"), named.get("perf_model"), named.get("top_k", 1.0))

    def pruned(
        self, configs: Sequence[Any], positional: Mapping[str, Any], keywords: Mapping[str, Any], location: str
    ) -> list[Any]:
        """The configurations that are left. `positional` and `keywords` are the call's arguments by name.

        Raises UserError if none is left.
        """
        left = list(configs)
        if self.early:
            left = list(self.early(left, dict(positional), **keywords))
        if self.model:
            count = self._count(len(left), location)
            if count < len(left):
                model, arguments = self.model, {**positional, **keywords}
                left = sorted(left, key=lambda config: model(**{**arguments, **config.all_kwargs()}))[:count]
        if not left:
            raise UserError(location, "prune_configs_by left no configuration", "let it leave at least one")
        return left

    def _count(self, among: int, location: str) -> int:
        if isinstance(self.top, float) and self.top <= 1.0:
            return max(1, int(among * self.top))
        if not isinstance(self.top, int):
            raise UserError(location, f"top_k cannot be {self.top}", "give a number of configurations, or a share")
        return self.top
