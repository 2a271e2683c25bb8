"""Small tuning files as Tensile's users had them, one for each dialect, made up here; and where real ones lie."""

from __future__ import annotations

import os
from pathlib import Path

DESIGN = """\
Parameters:
  Name: first_try
  Redo: Changed
  PlatformIdx: 0
BenchmarkProblems:
  - ProblemType:
      OperationType: GEMM
      DataType: s
      TransposeA: False
      TransposeB: True
      UseBeta: False
    InitialSolutionParameters:
      WorkGroupOrder: -4
      WorkGroupEdge: 16
      EdgeType: Shift
      KernelGrid: [1, 1, 1]
    BenchmarkCommonParameters:
      - ProblemSizes: [[96], 0, 0]
      - EdgeType: ['Shift', 'Branch', 'Exact']
      - Interleaving: [[4, 8], [1, 1]]
      - GlobalReadCoalescedA: [True, False]
        GlobalReadCoalescedB: [True, False]
    ForkParameters:
      - WorkGroupEdge: [8, 16]
      - ThreadTileEdge: [2, 4]
    BenchmarkForkParameters:
      - ProblemSizes: [[32, 64], 0, 0]
      - PreFetch: [True, False]
    JoinParameters:
      - MacroTile
    BenchmarkJoinParameters:
      - Unroll: [4, 8]
        SplitU: [1, 2]
    BenchmarkFinal: [[32, 32, 96], [64], [16, 16, 16, 64]]
Client:
  nothing that is read
BenchmarkClient:
  ProblemSizes: {1, 2, 4, ...}
"""
"""December 2016: common 3 + 2 + 4 on 1 size; 4 lineages x 2 on 2 sizes; 3 tiles x 4 on 2 sizes; 3 on 9 sizes."""

VERSION_2 = """\
GlobalParameters:
  EnqueuesPerSync: 1
  PrintLevel: 1
BenchmarkProblems:
  - ProblemType:
      OperationType: GEMM
      DataType: s
      TransposeA: False
      TransposeB: False
      Batched: True
    BenchmarkCommonParameters:
      - ProblemSizes: [[64], [64], [2], [64]]
      - EdgeType: ["Shift"]
      - VectorWidth: [-1]
      - LoopTail: [True]
    ForkParameters:
      - NumThreads: [64, 128]
      - GroupShape: [0, 2]
      - ThreadTileNumElements: [16]
      - SplitU: [1]
      - PrefetchLocalRead: [False, True]
    BenchmarkForkParameters:
    BenchmarkJoinParameters:
      - WorkGroupMapping: [-2, -1, 1, 2]
    BenchmarkFinalParameters:
      - ProblemSizes: [[32, 32, 64], [64], [1], [32]]
LibraryLogic:
LibraryClient:
"""
"""Version 2.4 without JoinParameters: 8 lineages; tiles 32x32 and 32x64; 2 x 4 on 1 size; 2 on 2 sizes."""

SIZE_GROUPS = """\
GlobalParameters:
  MinimumRequiredVersion: 4.4.0
  KernelTime: True
  ExitOnFails: 0
  DataInitTypeBeta: 1
BenchmarkProblems:
  - # the product
    - OperationType: GEMM
      DataType: s
      TransposeA: False
      TransposeB: True
      UseBeta: True
      Batched: True
      HighPrecisionAccumulate: False
      StridedBatched: False
    - # its sizes
      InitialSolutionParameters:
      BenchmarkCommonParameters:
        - KernelLanguage: ["Assembly"]
        - EdgeType: ["ShiftPtr"]
        - LoopTail: [True]
      ForkParameters:
        - ThreadTile:
          - [4, 4]
          - [8, 4]
        - WorkGroup:
          - [8, 8, 1]
        - StaggerU: [0, 32]
        - BufferLoad: [True]
        - VectorWidth: [-1, 3]
        - DepthU: [8, -1]
      BenchmarkForkParameters:
      JoinParameters:
      BenchmarkJoinParameters:
      BenchmarkFinalParameters:
        - ProblemSizes:
          - Range: [[64, 64, 128], [48], [2], [32], [0], [0], [0], [0]]
          - Exact: [48, 64, 1, 32]
          - MinStride: [1, 1, 1, 1]
  - - OperationType: GEMM
      DataType: z
      ComplexConjugateA: True
    - ForkParameters:
        - DepthU: [8, 16]
LibraryLogic:
  ScheduleName: "made-up"
  DeviceNames: ["Device 0000"]
  ArchitectureName: {Architecture: gfx90a, CUCount: 104}
"""
"""Version 4: 2 tiles x 2 StaggerU x 2 widths x 2 depths on 3 sizes, and 2 x 4 sizes of complex numbers."""

FORK_AND_FINAL = """\
BenchmarkProblems:
  - - OperationType: GEMM
      DataType: s
      HighPrecisionAccumulate: True
    - BenchmarkCommonParameters:
        - KernelLanguage: ["Source"]
        - PrefetchGlobalRead: [0, 2]
      ForkParameters:
        - MatrixInstruction: [[32, 32, 2, 1], [16, 16, 4, 1, 1, 2, 2, 2, 2]]
        - Groups:
          - - WorkGroup: [8, 8, 1]
              ThreadTile: [4, 4]
              StoreRemapVectorWidth: 0
            - WorkGroup: [16, 8, 1]
              ThreadTile: [4, 2]
              StoreRemapVectorWidth: 4
          - - StreamK: 0
            - StreamK: 3
      CustomKernels: ["one_of_theirs"]
      BenchmarkFinalParameters:
        - ProblemSizes:
          - Exact: {sizes: [64, 48, 32], stridesA: [-1, 80], stridesB: [-1, -1]}
          - Exact: [64, 48, 32, 8, 64, 64, 48]
"""
"""Today's: 2 x 2 x 2 x 2 combinations and a custom kernel on 2 sizes."""

SPLIT = """\
ProblemType: {OperationType: GEMM, DataType: s, TransposeA: false, TransposeB: false, Batched: true}
BenchmarkCommonParameters:
- KernelLanguage: [Assembly]
- EdgeType: [ShiftPtr]
ForkParameters:
- LdsPadA: [0, 4]
- DepthU: [8, 16]
- Groups:
  - - WorkGroup: [8, 8, 1]
      WorkGroupMapping: 1
    - WorkGroup: [8, 8, 1]
      WorkGroupMapping: -4
"""
SPLIT_SIZES = """\
- Exact: [64, 32, 2, 48]
- Range: [[32, 64], [32], [1], [32]]
"""
"""The split form with its sizes file: 2 x 2 x 2 on 3 sizes."""

DIALECTS = {
    "DESIGN": DESIGN,
    "VERSION_2": VERSION_2,
    "SIZE_GROUPS": SIZE_GROUPS,
    "FORK_AND_FINAL": FORK_AND_FINAL,
    "SPLIT": SPLIT,
}

REAL = Path(os.environ.get("TUNESMITH_DATA") or Path(__file__).parents[3] / "shared" / "data") / "tensile" / "configs"
