"""Names of Tensile's tuning files, from the design of 2016 to version 4.44, and what they are here.

Names and meanings are facts of ROCm/Tensile (MIT); the tables are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tunesmith.records import Value


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TENSILE_OPERATIONS = frozenset(
    _names("GEMM TensorContraction ConvolutionForward ConvolutionBackwardData ConvolutionBackwardWeights")
)
"""The operations whose problems are Tensile's. Problems of other operations are never changed."""

RENAMED = {
    "Unroll": "LoopUnroll",
    "PreFetch": "PrefetchGlobalRead",
    "Prefetch": "PrefetchGlobalRead",
    "NumLoadsParaA": "NumLoadsCoalescedA",
    "NumLoadsParaB": "NumLoadsCoalescedB",
    "WorkGroupOrder": "WorkGroupMapping",
    "PadLDS": "LdsPad",
    "InterSplitU": "GlobalSplitU",
}
"""Older names of parameters, with the same values."""

RENAMED_PHASES = {"BenchmarkFinal": "BenchmarkFinalParameters"}

_HELD = {
    "the kernels' source decides how instructions are scheduled": """
        AggressivePerfMode ClusterLocalRead DisableKernelPieces DisableVgprOverlapping ExpandPointerSwap
        ExtraLatencyForLR ExtraMiLatencyLeft GlobalReadPerMfma InnerUnroll InterleaveAlpha LoadMacInterleave
        LocalWritePerMfma LoopDoWhile LoopFor LoopTail LoopType OptNoLoadLoop OptPreLoopVmcnt
        PerformanceSyncLocation PerformanceWaitCount PerformanceWaitLocation PrefetchLocalRead
        ScheduleGlobalRead ScheduleIterAlg ScheduleLocalWrite SetPrioWorkaround StorePriorityOpt StoreSyncOpt
        SuppressNoLoadLoop UnrollIncIsDepthU UnrollLoopEfficiencyEnable UnrollMemFence VgprForLocalReadPacking
        Interleaving ClusterLocalReadPack InterleaveStoresInNoLoadLoop ScheduleLastIterAlg SuppresssNoLoadLoop
    """,
    "the kernels decide how tiles are read, staged and written": """
        1LDSBuffer DepthULdsDivisor DirectToLds DirectToLdsA DirectToLdsB DirectToVgprA DirectToVgprB
        FractionalLoad GlobalLoadVectorWidth GlobalLoadVectorWidthA GlobalLoadVectorWidthB GlobalRead2A
        GlobalRead2B GlobalReadCoalescedA GlobalReadCoalescedB GlobalReadCoalesceGroupA
        GlobalReadCoalesceGroupB GlobalReadCoalesceVectorA GlobalReadCoalesceVectorB GlobalStoreVectorWidth
        GroupLoadStore LdcEqualsLdd LdsInitCVgprs LocalDotLayout LocalLoadVectorWidth LocalRead2A LocalRead2B
        LocalReadVectorWidth LocalStoreVectorWidth LocalWrite2A LocalWrite2B LocalWriteCoalesceGroupA
        LocalWriteCoalesceGroupB MemoryModifierFormat NumElementsPerBatchStore StoreCInUnroll
        StoreCInUnrollExact StoreCInUnrollInterval StoreCInUnrollPostLoop StoreRemapVectorWidth
        ThreadSeparateGlobalReadA ThreadSeparateGlobalReadB TransposeLDS UnrollMajorLDSA UnrollMajorLDSB
        VectorAtomicWidth VectorStore VectorWidthA VectorWidthB VectorWidthGlobalLoad VectorWidthGlobalStore
        VectorWidthLocalLoad VectorWidthLocalStore WaveSeparateGlobalReadA WaveSeparateGlobalReadB
        ActivationFused GlobalReadCoalesceGroup GlobalReadCoalesceVector LocalSerialInUA LocalSerialInUB
        LocalWriteCoalesceVectorA LocalWriteCoalesceVectorB MinGlobalWriteVectorWidth ReadCoalesceGroupA
        ReadCoalesceGroupB SplitGlobalRead
    """,
    "rows of a tile in local memory have one padding, LdsPad, which keeps its default": """
        LdsBlockSizePerPad LdsBlockSizePerPadA LdsBlockSizePerPadB LdsPadA LdsPadB
    """,
    "the instructions and registers are those of this device": """
        AtomicAccumulate AtomicAddC BufferLoad BufferStore CustomKernelName DisableAtomicFail ForceStoreSC1
        Fp16AltImpl Fp16AltImplRound ISA MACInstruction MIArchVgpr MIBlock MIInputPerThread MIWaveGroup
        MIWaveTile MaxOccupancy MaxVgprNumber MinVgprNumber NoReject NonTemporalA NonTemporalB NonTemporalC
        NonTemporalD PreloadKernelArguments DelayRemainingArguments ReplacementKernel SourceSwap
        Use64bShadowLimit UseInstOffsetForGRO UseSgprForGRO WaveTile WavefrontSize EnableMatrixInstruction
        PreciseBoundsCheck
    """,
    "kernels here take every size, stride, alpha and beta": """
        AssertAIGreaterThanEqual AssertAILessThanEqual AssertAlphaValue AssertBetaValue AssertCEqualsD
        AssertFree0ElementMultiple AssertFree1ElementMultiple AssertMinApproxSize AssertSizeEqual
        AssertSizeGreaterThan AssertSizeLessThan AssertSizeMultiple AssertStrideAEqual AssertStrideBEqual
        AssertStrideCEqual AssertStrideDEqual AssertSummationElementMultiple CheckDimOverflow
        CheckTensorDimAsserts EdgeMultiKernel KernelMaxSizes MultiDevice KernelGrid KernelSerial
        KernelsConcurrent MacroTileMaxRatio MacroTileShapeMax MacroTileShapeMin MagicDivAlg MinKForGSU
        PackBatchDims PackFreeDims PackGranularity PackSummationDims TryRemoveLDS AssertSizeInRange
    """,
    "work-groups are dealt by WorkGroupMapping, GlobalSplitU and StreamKGrid": """
        DebugStreamK DepthUSplit GlobalSplitUAlgorithm GlobalSplitUAtomicAdd
        GlobalSplitUSummationAssignmentRoundRobin GlobalSplitUWorkGroupMappingRoundRobin PersistentKernel
        PersistentKernelAlongBatch PrefetchAcrossPersistent PrefetchAcrossPersistentMode StaggerU
        StaggerUMapping StaggerUStride StreamK StreamKAtomic StreamKXCCMapping WorkGroupMappingType
        WorkGroupOrdering WorkGroupSchedule DebugStreamKNoFixup DebugStreamKNoPartials StaggerTile
        TransposeWorkGroupGrid
    """,
}
HELD: Mapping[str, str] = {name: reason for reason, names in _HELD.items() for name in names.split()}
"""Parameters of Tensile's kernels without a meaning for any kernel here, with what holds instead."""

ONLY_BESIDE_SCHEDULE = {
    "GlobalReadVectorWidth": HELD["FractionalLoad"],
    "StoreVectorWidth": HELD["FractionalLoad"],
}
"""Names that only kernels with a Schedule have here; elsewhere they are held."""


class Instead(Enum):
    """What a value becomes that has no counterpart: the kernel's default, or nothing, so that the list has one value
    fewer."""

    DEFAULT = "the kernel's default"
    LEFT_OUT = "left out"


_AUTOMATIC: dict[Value, Value | Instead] = {-1: Instead.DEFAULT, 0: Instead.DEFAULT}
AMBIGUOUS_WIDTHS: tuple[Value, ...] = (3, 6)
"""Widths that Tensile has. In a file without other signs of Tensile they are mistakes."""
_NO_SUCH_WIDTH: dict[Value, Value | Instead] = dict.fromkeys(AMBIGUOUS_WIDTHS, Instead.LEFT_OUT)
VALUES: Mapping[str, Mapping[Value, Value | Instead]] = {
    "KernelLanguage": dict.fromkeys(("Assembly", "Source", "OCL", "HIP"), Instead.LEFT_OUT),
    "VectorWidth": {-1: Instead.DEFAULT, **_NO_SUCH_WIDTH},
    "NumLoadsCoalescedA": _AUTOMATIC,
    "NumLoadsCoalescedB": _AUTOMATIC,
    "GlobalReadVectorWidth": {**_AUTOMATIC, **_NO_SUCH_WIDTH},
    "StoreVectorWidth": {**_AUTOMATIC, **_NO_SUCH_WIDTH},
    "LdsPad": {-1: Instead.DEFAULT},
    "DepthU": dict.fromkeys(range(-16, 0), Instead.DEFAULT),
    "EdgeType": {
        "Shift": "ShiftPtr",
        "MultiShift": "ShiftPtr",
        "MultiBranch": "Branch",
        "Exact": "Branch",
        "None": "Branch",
    },
    "PrefetchGlobalRead": dict.fromkeys(range(2, 17), True),
    "WorkGroupMapping": {0: 1, **{-blocks: blocks for blocks in range(1, 1025)}},
    "GlobalSplitU": {0: 1, -1: 1},
}
"""Values that only Tensile takes, of parameters that a kernel here has: what each becomes. A negative WorkGroupMapping
swaps the order of its blocks in Tensile; a negative DepthU lets Tensile derive the depth."""

MEANINGS: Mapping[str, str] = {
    "KernelLanguage": "our kernels for this device",
    "MatrixInstruction": "our kernels for this device",
    "VectorWidth": "-1 is the kernel's default; no kernel has vectors of 3 or 6",
    "WorkGroupMapping": "its absolute value: no kernel swaps the order of its blocks; 0 is 1",
    "DepthU": "a negative depth is derived, as by DepthU 0",
    "PrefetchGlobalRead": "True: kernels prefetch one tile ahead",
    "NumLoadsCoalescedA": "the kernel's default",
    "NumLoadsCoalescedB": "the kernel's default",
    "LdsPad": "the kernel's default",
    "GlobalSplitU": "1: K is not split",
}
"""What becomes of such values, in words."""

TYPE_FIELDS_WITHOUT_MEANING: Mapping[str, str] = {
    "SilentHighPrecisionAccumulate": "the name of a type follows from its fields",
    "Fp16AltImpl": "half-precision products are exact here, with sums in single precision",
    "Fp16AltImplRound": "half-precision products are exact here, with sums in single precision",
    "TileAwareSelection": "the library logic selects by time",
    "AllowNoFreeDims": "a GEMM has free indices",
    "NumIndicesLD": "leading dimensions follow from the type",
    "IndexAssignmentsLD": "leading dimensions follow from the type",
    "MirrorDimsA": "a GEMM has no mirrored index",
    "MirrorDimsB": "a GEMM has no mirrored index",
    "NumIndicesC": "the indices of a GEMM follow from Batched",
    "NumDimensionsC": "the indices of a GEMM follow from Batched",
    "IndexAssignmentsA": "the indices of a GEMM follow from its transposes",
    "IndexAssignmentsB": "the indices of a GEMM follow from its transposes",
    "ConvolutionConfig": "a GEMM has no filter",
    "UseInitialStrides": "matrices have unit stride in their first dimension",
    "UseInitialStridesAB": "matrices have unit stride in their first dimension",
    "UseInitialStridesCD": "matrices have unit stride in their first dimension",
    "SetConstStrideA": "strides are those of dense matrices",
    "SetConstStrideB": "strides are those of dense matrices",
    "ZeroPadA": "a GEMM has no padded index",
    "ZeroPadB": "a GEMM has no padded index",
    "StochasticRounding": "results are rounded to nearest",
    "ComplexConjugateA": "real numbers have no conjugate",
    "ComplexConjugateB": "real numbers have no conjugate",
    **dict.fromkeys(
        _names(
            """
            AssignedDerivedParameters Index0 Index1 Index01A Index01B IndexUnroll IndexUnrollA IndexUnrollB IndicesBatch
            IndicesFree IndicesSummation NumIndicesBatch NumIndicesFree NumIndicesSummation TLUA TLUB Tensor0 Tensor1
            TileA TileB TotalIndices
            """
        ),
        "it follows from the other fields",
    ),
}
"""Fields of a ProblemType that change nothing at their default, with the reason."""

REJECTING_FIELDS: Mapping[str, str] = {
    "UseInitialStrides": "initial strides",
    "UseInitialStridesAB": "initial strides",
    "UseInitialStridesCD": "initial strides",
    "SetConstStrideA": "constant strides",
    "SetConstStrideB": "constant strides",
    "ZeroPadA": "padded indices",
    "ZeroPadB": "padded indices",
    "MirrorDimsA": "mirrored indices",
    "MirrorDimsB": "mirrored indices",
    "StochasticRounding": "stochastic rounding",
}
"""Fields whose other values ask for what no kernel computes, with the constant reason of the rejection."""

UNAVAILABLE_TYPES: Mapping[str, str] = {
    "c": "complex numbers",
    "z": "complex numbers",
    "4xi8": "packed integers",
    "i8x4": "packed integers",
    "f8b8": "mixed float8 operands",
    "b8f8": "mixed float8 operands",
    "x": "xfloat32 operands",
    "xf32": "xfloat32 operands",
}
"""Data types of Tensile's that no kernel computes (by their words, in lower case), with the reason."""

UNAVAILABLE_OPERANDS: Mapping[str, str] = {"i": "int32 operands"}
"""Data types that only results have here, with the reason why operands of these types are rejected."""

TYPE_NUMBERS = dict(enumerate(_names("s d c z h 4xi8 i b i8 x f8 b8 f8b8 b8f8")))
"""Tensile's numbers of data types. Those from 9 on came with version 4.38; no number ever meant another type."""
TYPE_WORDS: Mapping[str, str] = {
    "complexsingle": "c",
    "complex single": "c",
    "float_complex": "c",
    "complexfloat": "c",
    "complexdouble": "z",
    "complex double": "z",
    "double_complex": "z",
    "int8x4": "4xi8",
    "float8bfloat8": "f8b8",
    "bfloat8float8": "b8f8",
    "xfloat32": "x",
    "int32": "i",
}
"""Tensile's words for data types that no kernel computes."""

TOP_WITHOUT_MEANING: Mapping[str, str] = {
    "LibraryClient": "Tensile's own client is not built",
    "TestParameters": "marks of Tensile's own tests",
    "MinimumRequiredVersion": "a version of Tensile's",
    "Analyze": "the analysis of times differs here",
    "Library": "a library is written in any case",
    "Client": "Tensile's own client is not built",
    "BenchmarkClient": "Tensile's own client is not built",
}
"""Keys at the top of a file that mean nothing here."""

INITIAL_SCALARS = {0: 0.0, 1: 1.0, 2: 2.0}
"""DataInitTypeAlpha and DataInitTypeBeta: the numbers that 0 (zero), 1 (one) and 2 (two) stand for."""
