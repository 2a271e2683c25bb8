"""A problem prepared for verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tunesmith.problems import Array, Expected
from tunesmith.records import Operand

from .poison import Bytes, around_pattern, filled, is_whole, itemsize, output_pattern
from .regions import Region, padding_mask


@dataclass(frozen=True, slots=True)
class Comparison:
    """An output of which `count` elements are compared; `is_exact` if they are whole numbers, which must be equal."""

    operand: Operand
    count: int
    is_exact: bool


@dataclass(frozen=True)
class VerificationCase:
    """A problem to verify a plan on: operands, the contents of inputs, and the expected outputs."""

    operands: tuple[Operand, ...]
    inputs: Mapping[str, Array]
    expected: Mapping[str, Expected]
    agreement: Mapping[str, float] = field(default_factory=dict)
    """`Operation.agreement`: the outputs that are compared with a first launch, whose results `learned` gets."""
    learned: dict[str, Expected] = field(default_factory=dict, compare=False)
    _images: dict[Region, Bytes] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """Bytes of host memory that the case holds, with the inputs' images once they are made."""
        every = (*self.expected.values(), *self.learned.values())
        references = (array for expected in every for array in (expected.value, expected.bound))
        return sum(array.nbytes for array in (*self.inputs.values(), *references, *self._images.values()))

    @property
    def inputs_only(self) -> list[Operand]:
        return [operand for operand in self.operands if operand.role == "in"]

    @property
    def outputs(self) -> list[Operand]:
        return [operand for operand in self.operands if operand.role != "in"]

    def images(self, regions: Mapping[str, Region]) -> Mapping[str, Bytes]:
        """The inputs between their guard bands, by name. Made once, since they are the same for every candidate."""
        for operand in self.inputs_only:
            region = regions[operand.name]
            if region not in self._images:
                self._images[region] = region.image(self.content(operand))
        return {operand.name: self._images[regions[operand.name]] for operand in self.inputs_only}

    def content(self, operand: Operand) -> Bytes:
        """The storage of an operand that is read. Elements between its rows are NaN, since no result may depend on
        them."""
        content = np.ascontiguousarray(self.inputs[operand.name]).view(np.uint8)
        padding = padding_mask(operand)
        if padding is not None:
            content, element = content.copy(), np.dtype((np.void, itemsize(operand.dtype)))
            content.view(element)[padding] = around_pattern(operand.dtype).view(element)
        return content

    def before(self, operand: Operand, region: Region, poison: int) -> Bytes:
        """An output's storage before a run: the poison, or the content of an output that is also read."""
        if operand.role != "out":
            return self.content(operand)
        return filled(output_pattern(operand.dtype, poison), region.size)

    def compared(self) -> list[tuple[Operand, Expected]]:
        """The outputs whose elements have a reference."""
        known = {**self.expected, **self.learned}
        pairs = ((operand, known.get(operand.name)) for operand in self.outputs)
        return [(operand, expected) for operand, expected in pairs if expected is not None and 0 not in operand.shape]

    def comparisons(self) -> list[Comparison]:
        """What `compared` has once all is learned, without the values."""
        outputs = [operand for operand in self.outputs if 0 not in operand.shape]
        return [
            Comparison(operand, values.value.size, values.value.dtype.kind in "iu")
            if (values := self.expected.get(operand.name))
            else Comparison(operand, operand.storage_elements, is_whole(operand.dtype))
            for operand in outputs
            if operand.name in self.expected or operand.name in self.agreement
        ]
