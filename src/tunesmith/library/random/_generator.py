"""The front door of random numbers: a generator that fills buffers which are there already."""

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
from ._settings import OFFSETS, PLACE, Settings, Shapes, natural

Filled = TypeVar("Filled")


class Generator:
    """A sequence of random numbers that goes on from one call to the next.

    `name` is one of `tunesmith.problems.random.GENERATORS`. `offset` is how much of the sequence is left out, in words
    of 32 bits (of a Sobol generator: in points of `dimensions` dimensions). `ordering`: with "default" (or "legacy")
    the sequence depends on name and seed alone; with "dynamic" that of xorwow, mrg32k3a, mrg31k3p, lfsr113, mt19937 and
    mtgp32 also on how many work-items they are launched with. `shape` is the launch's (block, grid); else the tuned one
    for the device is taken from `table` (what `tunesmith random select` writes, or its path), else the default one.

    `device` is a selector, part of a name, or an open device; else the one that the first buffer lies on, for host
    arrays the first usable. A device named is opened once for all generators of the process. Calls from several threads
    come one after the other. Raises UserError for what does not go together.

    A call uses whole vectors: IN words that make OUT values (`tunesmith.problems.random.width_of`). What is left of a
    call's last vector is dropped, so that two calls give what one of both lengths gives if the first one's length is a
    multiple of OUT. Generators of engines deal vectors in turns, one from each engine; a call that needs another number
    of words a vector than the last one begins with a new turn.
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
        self._asked = device
        self._position = Position(natural("offset", offset, OFFSETS))
        if offset:
            self._check_skips()
        self._lock = call_lock()
        self._runner: Runner | None = None
        self.launched: GeneratorLaunch | None = None
        """What the last call launched."""

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
        """Words of the sequence (of a Sobol generator: points) that are over."""
        return self._position.words

    @property
    def shape(self) -> LaunchShape | None:
        """The launch shape, on which the sequence of a dynamic ordering depends; None while a table's device is open.

        A distribution and type may be launched with one of their own where that changes no number: see `launched`.
        """
        return self._runner.shape if self._runner else self._shapes.settled

    def uniform(self, out: Filled, *, stream: Any = None) -> Filled:
        """Fill with numbers in (0, 1], or integers of their type's whole range.

        `out` is a C-contiguous NumPy array, or a torch tensor on the host or a GPU, or anything on a GPU with
        `__cuda_array_interface__`; of any shape, and beginning at any element. It is also what is returned. With a
        `stream` (a handle, or an object that has one) the numbers of a buffer on a GPU are made on it, and nothing
        waits; torch tensors without one take torch's current stream. Else they are there on return. With
        `dimensions`, the first of so many equal parts of the buffer is dimension 0 of all points, and so on.

        Raises TypeError for data types that the distribution does not come in, ValueError for buffers that cannot be
        filled, UserError for what does not run on the device, `devices.LaunchError` when the device fails.
        """
        return self._fill(out, stream, "uniform")

    def normal(self, out: Filled, mean: float = 0.0, stddev: float = 1.0, *, stream: Any = None) -> Filled:
        """Fill with normal numbers, else as `uniform`. Raises ValueError for a negative standard deviation."""
        return self._fill(out, stream, "normal", mean=float(mean), stddev=_deviation(stddev))

    def log_normal(self, out: Filled, mean: float = 0.0, stddev: float = 1.0, *, stream: Any = None) -> Filled:
        """Fill with numbers whose logarithm has this mean and standard deviation, else as `normal`."""
        return self._fill(out, stream, "log_normal", mean=float(mean), stddev=_deviation(stddev))

    def poisson(self, out: Filled, lam: float, *, stream: Any = None) -> Filled:
        """Fill with Poisson numbers of mean `lam`, above 0 and below 2^31 (int32: 2^30), else as `uniform`."""
        mean = float(lam)
        if not 0 < mean < LARGEST_MEAN:
            raise ValueError(f"lam is {lam}; a Poisson distribution has a mean above 0 and here below 2^31")
        return self._fill(out, stream, "poisson", lam=mean)

    def skip(self, words: int) -> None:
        """Leave out so many words (of a Sobol generator: points), and what is left of the turn before them."""
        self._check_skips()
        with self._lock:
            here = self._position.fit_for(0, self._engines)
            self._position = Position(here.offset + natural("words", words, OFFSETS - here.offset))
            if self._runner:
                self._runner.reseed()

    def state(self) -> dict[str, Any]:
        """All that it takes to go on elsewhere: words and numbers, for `from_state`, JSON or pickle."""
        with self._lock:
            given = self._pinned.given
            return {
                "generator": self.name,
                "seed": self.seed,
                "ordering": self.ordering,
                "dimensions": self.dimensions,
                "shape": None if given is None else [given.block, given.grid],
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
        """A generator that goes on where another was, on any device.

        mt19937 and mtgp32 go over all that was given before, which takes as long as it took. Raises UserError for what
        is no such state.
        """
        try:
            settings = {name: state[name] for name in ("seed", "ordering", "shape", "dimensions")}
            made = cls(state["generator"], device=device, table=table, **settings)
            parts = {part.name: natural(part.name, state[part.name]) for part in fields(Position)}
        except KeyError as missing:
            raise UserError(PLACE, f"the state has no {missing}", "give what `state()` returned") from None
        made._position = Position(**parts)
        return made

    def close(self) -> None:
        """Give memory back. The generator can be used again, and goes on where it was."""
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
        return _restored, (self.state(), self._asked if isinstance(self._asked, str) else None)

    def __repr__(self) -> str:
        where = f", device={self._runner.device.target.name!r}" if self._runner else ""
        said = f"{self.name!r}, seed={self.seed}, ordering={self.ordering!r}, shape={self.shape}"
        return f"Generator({said}, position={self.position}{where})"

    def _fill(self, out: Filled, stream: Any, distribution: str, **parameters: float) -> Filled:
        buffer = buffer_of(out)
        request = FillRequest(distribution, value_type_of(distribution, buffer.dtype), **parameters)
        asked = stream_of(stream)
        if buffer.array is not None and asked:
            raise ValueError("out lies on the host; a stream goes with a buffer on a GPU")
        if buffer.dtype == "int32" and request.lam >= LARGEST_MEAN / 2:
            raise ValueError(f"lam is {request.lam}; such numbers need uint32")
        if buffer.count % self.dimensions:
            raise ValueError(f"out has {buffer.count} elements, which are no points of {self.dimensions} dimensions")
        if buffer.count:
            with self._lock:
                runner = self._opened(buffer)
                self._position, self.launched = runner.fill(request, self._position, buffer, asked or buffer.stream)
        return out

    def _opened(self, buffer: Buffer) -> Runner:
        if self._runner is None:
            self._runner = Runner(self._settings, self._shapes, device_for(self._asked, buffer.selector))
        target = self._runner.device.target
        if buffer.selector not in ("", target.selector):
            what = f"the buffer lies on {buffer.selector}, the generator works on {target.selector} ({target.name})"
            raise UserError(PLACE, what, f"make another one with device={buffer.selector!r}")
        return self._runner

    @property
    def _engines(self) -> int:
        """How many engines deal; known as soon as they dealt anything."""
        if not self._settings.engines_depend:
            return 1
        shape = self.shape if self._settings.dynamic else None
        return shape.threads if shape else self._settings.generator.default_engines

    @property
    def _pinned(self) -> Shapes:
        """The shapes with the one that the sequence depends on, now that it is known."""
        if self._settings.engines_depend and self._settings.dynamic:
            return replace(self._shapes, given=self.shape)
        return self._shapes

    def _check_skips(self) -> None:
        if not self._settings.generator.skips:
            what = f"{self.name} cannot leave out a part of its sequence"
            raise UserError(PLACE, what, "leave offset out, or take another generator")


def _restored(state: Mapping[str, Any], device: str | None) -> Generator:
    return Generator.from_state(state, device=device)


def _deviation(stddev: float) -> float:
    if not float(stddev) >= 0:
        raise ValueError(f"stddev is {stddev}; a standard deviation is not negative")
    return float(stddev)
