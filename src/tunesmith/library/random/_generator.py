"""`Generator`: fills existing buffers with random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tunesmith.devices import Device
from tunesmith.library.arrays._streams import stream_of
from tunesmith.library.launch._locks import call_lock
from tunesmith.logic.random.table import RandomTable
from tunesmith.problems.random.poisson import LARGEST_MEAN
from tunesmith.records import LaunchShape, UserError

from ._buffers import Buffer, buffer_of, value_type_of
from ._devices import device_for
from ._position import Position
from ._runner import FillRequest, GeneratorLaunch, Runner
from ._settings import LOCATION, OFFSETS, Settings, Shapes, natural

Filled = TypeVar("Filled")


class Generator:
    """A sequence of random numbers that goes on from one call to the next.

    `name` is one of `tunesmith.problems.random.GENERATORS`. `offset` is the length of the part of the sequence to leave
    out, in words of 32 bits (for a Sobol generator: in points of `dimensions` dimensions). `ordering`: with "default"
    (or "legacy") the sequence depends on name and seed alone; with "dynamic" the sequence of xorwow, mrg32k3a,
    mrg31k3p, lfsr113, mt19937 and mtgp32 also depends on the number of work-items of the launch. `shape` is the
    launch's (block, grid). Without it, the tuned shape for the device is taken from `table` (what `tunesmith random
    select` writes, or its path), else the default shape.

    `device` is a selector, part of a name, or an open device. Without it, the device of the first buffer is used; for
    host arrays, the first usable device. A named device is opened once for all generators of the process. Calls from
    several threads run one after the other. Raises UserError for arguments that do not go together.

    A call uses whole vectors: IN words that make OUT values (`tunesmith.problems.random.width_of`). The rest of a
    call's last vector is dropped. So two calls give the same numbers as one call of both lengths if the first length is
    a multiple of OUT. Generators with engines deal vectors in turns, one vector from each engine. A call whose vectors
    have another number of words than those of the last call begins with a new turn.
    """

    def __init__(
        self,
        name: str = "philox4_32_10",
        seed: int = 0,
        *,
        offset: int = 0,
        ordering: str = "default",
        device: Device | str | None = None,
        table: RandomTable | Path | str | None = None,
        shape: LaunchShape | Sequence[int] | None = None,
        dimensions: int = 1,
    ) -> None:
        self._settings = Settings.of(name, seed, ordering, dimensions)
        self._shapes = Shapes.of(self._settings, shape, table)
        self._requested = device
        self._position = Position(natural("offset", offset, OFFSETS))
        if offset:
            self._check_skips()
        self._lock = call_lock()
        self._runner: Runner | None = None
        self.launched: GeneratorLaunch | None = None
        """The last call's launch; None before the first call."""

    @property
    def name(self) -> str:
        return self._settings.generator.name

    @property
    def seed(self) -> int:
        return self._settings.seed

    @property
    def ordering(self) -> str:
        return self._settings.ordering

    @property
    def dimensions(self) -> int:
        return self._settings.dimensions

    @property
    def position(self) -> int:
        """The number of consumed words of the sequence (for a Sobol generator: of points)."""
        return self._position.words

    @property
    def shape(self) -> LaunchShape | None:
        """The launch shape, on which the sequence of a dynamic ordering depends; None while it is unknown, since a
        table is given and no device has been chosen yet.

        A distribution and type may have a launch shape of their own if it does not change the numbers: see `launched`.
        """
        return self._runner.shape if self._runner else self._shapes.settled

    def uniform(self, out: Filled, *, stream: Any = None) -> Filled:
        """Fill `out` with numbers in (0, 1], or with integers of the data type's whole range. Returns `out`.

        `out` is a C-contiguous NumPy array, a torch tensor on the host or a GPU, or an object on a GPU with
        `__cuda_array_interface__`; of any shape, and beginning at any element. With a `stream` (a handle, or an object
        that has one) a buffer on a GPU is filled on that stream, and the call returns before the numbers are written.
        So it does for torch tensors without a `stream`, on torch's current stream. In all other cases the numbers are
        written on return. With `dimensions`, the buffer is divided into as many equal parts: the first part gets
        dimension 0 of all points, and so on.

        Raises TypeError for a data type that the distribution does not have, ValueError for a buffer that cannot be
        filled, UserError if the launch cannot run on the device, `devices.LaunchError` if the device fails.
        """
        return self._fill(out, stream, "uniform")

    def normal(self, out: Filled, mean: float = 0.0, stddev: float = 1.0, *, stream: Any = None) -> Filled:
        """Fill `out` with normally distributed numbers; the rest as in `uniform`. Raises ValueError for a negative
        standard deviation."""
        return self._fill(out, stream, "normal", mean=float(mean), stddev=_deviation(stddev))

    def log_normal(self, out: Filled, mean: float = 0.0, stddev: float = 1.0, *, stream: Any = None) -> Filled:
        """Fill `out` with numbers whose logarithm has this mean and standard deviation; the rest as in `normal`."""
        return self._fill(out, stream, "log_normal", mean=float(mean), stddev=_deviation(stddev))

    def poisson(self, out: Filled, lam: float, *, stream: Any = None) -> Filled:
        """Fill `out` with Poisson numbers of mean `lam`, above 0 and below 2^31 (int32: 2^30); the rest as in
        `uniform`."""
        mean = float(lam)
        if not 0 < mean < LARGEST_MEAN:
            raise ValueError(f"lam is {lam}; a Poisson distribution has a mean above 0 and here below 2^31")
        return self._fill(out, stream, "poisson", lam=mean)

    def skip(self, words: int) -> None:
        """Leave out the rest of the current turn, then so many words (for a Sobol generator: points)."""
        self._check_skips()
        with self._lock:
            turn = self._position.fit_for(0, self._engines)
            self._position = Position(turn.offset + natural("words", words, OFFSETS - turn.offset))
            if self._runner:
                self._runner.reseed()

    def state(self) -> dict[str, Any]:
        """Everything that `from_state` needs to go on from here: strings and numbers, fit for JSON and pickle."""
        with self._lock:
            shape = self._pinned.requested
            return {
                "generator": self.name,
                "seed": self.seed,
                "ordering": self.ordering,
                "dimensions": self.dimensions,
                "shape": None if shape is None else [shape.block, shape.grid],
                **asdict(self._position),
            }

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        *,
        device: Device | str | None = None,
        table: RandomTable | Path | str | None = None,
    ) -> Generator:
        """A generator that goes on from the state of another generator, on any device.

        mt19937 and mtgp32 generate all earlier numbers again, which takes as long as it did before. Raises UserError
        for an invalid state.
        """
        try:
            settings = {name: state[name] for name in ("seed", "ordering", "shape", "dimensions")}
            generator = cls(state["generator"], device=device, table=table, **settings)
            parts = {part.name: natural(part.name, state[part.name]) for part in fields(Position)}
        except KeyError as missing:
            raise UserError(LOCATION, f"the state has no {missing}", "give what `state()` returned") from None
        generator._position = Position(**parts)
        return generator

    def close(self) -> None:
        """Release memory. The generator can be used again, and goes on where it was."""
        with self._lock:
            if self._runner:
                self._shapes = self._pinned
                self._runner.close()
                self._runner = None

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.state(), self._requested if isinstance(self._requested, str) else None)

    def __repr__(self) -> str:
        device = f", device={self._runner.device.target.name!r}" if self._runner else ""
        settings = f"{self.name!r}, seed={self.seed}, ordering={self.ordering!r}, shape={self.shape}"
        return f"Generator({settings}, position={self.position}{device})"

    def _fill(self, out: Filled, stream: Any, distribution: str, **parameters: float) -> Filled:
        buffer = buffer_of(out)
        request = FillRequest(distribution, value_type_of(distribution, buffer.dtype), **parameters)
        requested_stream = stream_of(stream)
        if buffer.array is not None and requested_stream:
            raise ValueError("out lies on the host; a stream goes with a buffer on a GPU")
        if buffer.dtype == "int32" and request.lam >= LARGEST_MEAN / 2:
            raise ValueError(f"lam is {request.lam}; such numbers need uint32")
        if buffer.count % self.dimensions:
            raise ValueError(f"out has {buffer.count} elements, which are no points of {self.dimensions} dimensions")
        if buffer.count:
            with self._lock:
                runner = self._opened(buffer)
                used_stream = requested_stream or buffer.stream
                self._position, self.launched = runner.fill(request, self._position, buffer, used_stream)
        return out

    def _opened(self, buffer: Buffer) -> Runner:
        if self._runner is None:
            self._runner = Runner(self._settings, self._shapes, device_for(self._requested, buffer.selector))
        target = self._runner.device.target
        if buffer.selector not in ("", target.selector):
            what = f"the buffer lies on {buffer.selector}, the generator works on {target.selector} ({target.name})"
            raise UserError(LOCATION, what, f"make another one with device={buffer.selector!r}")
        return self._runner

    @property
    def _engines(self) -> int:
        """The number of engines; known as soon as they dealt anything."""
        if not self._settings.engines_depend:
            return 1
        shape = self.shape if self._settings.dynamic else None
        return shape.threads if shape else self._settings.generator.default_engines

    @property
    def _pinned(self) -> Shapes:
        """The shapes, with the shape fixed if the sequence depends on it."""
        if self._settings.engines_depend and self._settings.dynamic:
            return replace(self._shapes, requested=self.shape)
        return self._shapes

    def _check_skips(self) -> None:
        if not self._settings.generator.skips:
            what = f"{self.name} cannot leave out a part of its sequence"
            raise UserError(LOCATION, what, "leave offset out, or take another generator")


def _restored(state: Mapping[str, Any], device: str | None) -> Generator:
    return Generator.from_state(state, device=device)


def _deviation(stddev: float) -> float:
    if not float(stddev) >= 0:
        raise ValueError(f"stddev is {stddev}; a standard deviation is not negative")
    return float(stddev)
