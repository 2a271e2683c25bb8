"""The fields of a convolution's ProblemType, named as in cuDNN's and MIOpen's convolution descriptors."""

from __future__ import annotations

from enum import StrEnum

from tunesmith.problems.gemm.fields import INPUTS
from tunesmith.problems.keys import Key

MOST_DIMENSIONS = 3


class Direction(StrEnum):
    """The computation: which of the three arrays is computed from the two others."""

    FORWARD = "Forward"
    BACKWARD_DATA = "BackwardData"
    BACKWARD_WEIGHTS = "BackwardWeights"


CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")
CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW")
"""Layouts, indexed by the number of spatial dimensions less one. In a filter's layout, N stands for its output channels
(K)."""

PER_DIMENSION = {"Stride": 1, "Padding": 0, "Dilation": 1}
"""Fields with a number for each spatial dimension, the outermost first, and their defaults; the default is also the
smallest value."""

LAYOUTS = ("InputLayout", "FilterLayout", "OutputLayout")

_LAYOUT = "channels last (NHWC) or channels first (NCHW), with as many dimensions as there are"

CONVOLUTION_FIELDS = (
    Key("OperationType", "one of", "What is computed.", "Convolution", ("Convolution",)),
    Key(
        "DataType",
        "one of",
        "Precision of the arrays that are read, as of a GEMM's A and B; the sums and the array that is written have "
        "the precisions that a GEMM's have.",
        "s",
        INPUTS,
    ),
    Key(
        "Direction",
        "one of",
        "Forward computes the output, BackwardData the gradient of the input, BackwardWeights that of the filter.",
        Direction.FORWARD.value,
        tuple(direction.value for direction in Direction),
    ),
    Key("SpatialDimensions", "one of", "1 (W), 2 (H, W) or 3 (D, H, W).", 2, (1, 2, 3)),
    Key("Stride", "list of natural numbers", "Steps of the filter, a number for each spatial dimension.", 1),
    Key("Padding", "list of natural numbers", "Zeros at both ends of the input, for each spatial dimension.", 0),
    Key("Dilation", "list of natural numbers", "Distance between taps of the filter, for each spatial dimension.", 1),
    Key("Groups", "positive integer", "Groups of channels that are convolved by themselves; C and K are multiples.", 1),
    Key("InputLayout", "one of", f"The input: {_LAYOUT}.", None, (*CHANNELS_LAST, *CHANNELS_FIRST)),
    Key("FilterLayout", "one of", f"The filter: {_LAYOUT}.", None, (*CHANNELS_LAST, *CHANNELS_FIRST)),
    Key("OutputLayout", "one of", f"The output: {_LAYOUT}.", None, (*CHANNELS_LAST, *CHANNELS_FIRST)),
)
