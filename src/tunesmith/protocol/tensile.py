"""Names of Tensile (ROCm/Tensile, v2.0 to 4.44) that a tuning file may contain, and how they are treated here."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANSWERED_GLOBALS = {
    "NumElementsToValidate": "every element that is computed is verified before anything is timed",
    "EnqueuesPerSync": "sampling goes on until Noise is reached; MinimumSamples and MaximumSamples limit it",
    "SyncsPerBenchmark": "sampling goes on until Noise is reached; MinimumSamples and MaximumSamples limit it",
    "NumBenchmarks": "finalists are measured again, interleaved; ConfirmBlocks says how often",
    "NumWarmups": "warm-up goes on until times are stable; WarmUpSeconds limits it",
    "numWarmups": "warm-up goes on until times are stable; WarmUpSeconds limits it",
    "DataInitTypeAlpha": "alpha to measure with is Alpha in the ProblemType",
    "DataInitTypeBeta": "beta to measure with is Beta in the ProblemType",
    "Platform": "the device is chosen when the run is started",
    "Device": "the device is chosen when the run is started",
    "FlushCount": "ColdCache says whether the cache is emptied",
    "FlushMemorySize": "ColdCache says whether the cache is emptied",
    "FlushMemSize": "ColdCache says whether the cache is emptied",
    "DataTypeInitAlpha": "Tensile has no such parameter either; DataInitTypeAlpha was meant",
    "DataTypeInitBeta": "Tensile has no such parameter either; DataInitTypeBeta was meant",
    "ExitOnFails": "a wrong result is a measurement, and the run goes on",
    "ResumeBenchmarkProblem": "the same command goes on with a stopped run",
    "Redo": "the same command goes on with a stopped run; --remeasure measures again",
    "ForceRedo": "the same command goes on with a stopped run; --remeasure measures again",
    "KernelLanguage": "the parameter KernelLanguage chooses among the kernels for this device",
    "PlatformIdx": "the device is chosen when the run is started",
    "DeviceIdx": "the device is chosen when the run is started",
}
"""Global parameters that are replaced by something else here, and by what."""

IGNORED_GLOBALS = _names(
    """
    ActivationNoFuse ActivationTypeIfAll AnalyzePath ArchCaps Architecture AsmCaps AsmDebug AsmHasDirectToLds
    AsmHasExplicitCO AssemblerPath Backend BenchmarkClientVersion BenchmarkDataPath BenchmarkMetric BenchmarkPath
    BenchmarkPerCU BenchmarkProblemsPath BestSolution BoundsCheck BufferOffsetA BufferOffsetB BufferOffsetC
    BufferOffsetD BuildClient CacheAsmCaps CCompiler CEqualD CheckDimOverflow ClangOffloadBundlerPath
    CleanupBuildFiles ClientArgs ClientBuildPath ClientExecutionLockPath ClientLogLevel ClientParamsFile
    ClientParamsGranularityFile ClientPath ClientSourcePath CMakeBuildType CmakeCCompiler CMakeCFlags
    CmakeCxxCompiler CMakeCXXFlags CodeFromFiles CodeObjectVersion ConvolutionVsContraction CpuThreads
    CSVExportWinner CSVMergeSameProblemID CurrentISA CustomKernelDirectory CxxCompiler DataInitType DataInitTypeA
    DataInitTypeAB DataInitTypeActivationArgs DataInitTypeB DataInitTypeC DataInitTypeD DataInitValueActivationArgs
    DebugKernel DebugPrintLevel DebugSkipAtomic DebugSkipNonAtomic DeviceLDS DictLibraryLogic DoValidation
    DumpTensors EmbedLibrary EmbedLibraryKey EnableAsserts EnableDebugA EnableDebugB EnableDebugC EnableHalf
    ExitAfterKernelGen ExpandRanges ExpectedValueC ExperimentalLogicDir ExtractKernelPath ForceCExpectedValue
    ForceGenerateKernel ForceRedoBenchmarkProblems ForceRedoLibraryClient ForceRedoLibraryLogic
    GenerateManifestAndExit GenerateSourcesAndExit GranularityThreshold HardwareMonitor HardwareSpecsPath HccVersion
    HipClangVersion HipConfigPath IgnoreAsmCapCache IndexChars indexChars KeepBuildTmp KernelTime
    LazyLibraryLoading LdsPowerStudy LegacyComponents LibraryClientPath LibraryFormat LibraryLogicFormat
    LibraryLogicPath LibraryPrintDebug LibraryUpdateComment LibraryUpdateFile LlvmBinPath MacPowerStudy MaxDepthU
    MaxFileName MaxLDS MaxMacroTileRatio MaxRegisters MaxThreads MaxThreadTile MaxWorkspaceSize
    MemThroughputThreshold MergeFiles MinimumRequiredVersion MinKForGSU MinLDSUtilization MinThreads Name
    NetworkName NewClient NewClientArgs NumMergedFiles OldClientSourceTmp PackageLibrary PerfModelL2ReadBwMul
    PerfModelL2ReadHits PerfModelL2WriteHits PerfModelMfma PerfModelOpsPerCycle PerfModelReadEfficiency
    PerformanceMetric PinClocks PreciseKernelTime PrintCodeCommands PrintConvolutionUsage PrintDebug
    PrintIndexAssignments PrintLevel PrintMaxCols PrintMaxRows PrintRegisterDebug PrintSolutionRejectionReason
    PrintTensorA PrintTensorB PrintTensorC PrintTensorD PrintTensorHex PrintTensorRef PrintWinnersOnly PristineOnGPU
    ProblemFromConvolution RectangularLoadsOnly ROCmAgentEnumeratorPath ROCmBinPath ROCmPath ROCmSMIPath
    RunCriteriaMinSize RunCriteriaVerify RuntimeLanguage ScriptPath SeparateArchitectures ShortFileNames ShortNames
    ShowProgressBar SleepPercent SleepSize SleepSolution SolutionMapHash SolutionPrintDebug SolutionSelectionAlg
    SolutionSelectionMethod SortProblems SourcePath SupportedISA TileAwareConfigs TileAwareDimPadBytes
    UnrollLoopEfficiencyEnable ValidationMaxToPrint ValidationPrintValids VerifyManifest WavefrontWidth WorkingPath
    WriteLibraryPath
    """
)
"""Global parameters without a meaning here."""

ANSWERED_LOGIC = {"DeviceNames": "the logic holds for the device that it was measured on"}
"""Keys of LibraryLogic that are replaced by something else here, and by what."""

IGNORED_LOGIC = _names(
    """
    BranchPenalty BranchWeight Dilation FractionTimeSavedMin InitialSolutionWindow LibraryType OutlierThreshold
    SmoothOutliers SolutionImportanceMin Threshold Weight0 Weight1 Weight2
    """
)
"""Keys of LibraryLogic for an analysis that differs here."""

RENAMED_PARAMETERS = {
    "SplitU": "the third number of WorkGroup (LocalSplitU, in a work-group) or GlobalSplitU (over work-groups)",
    "GroupShape": "WorkGroup, a list such as [16, 16, 1]",
    "NumThreads": "WorkGroup, a list such as [16, 16, 1]",
    "WorkGroupEdge": "WorkGroup, a list such as [16, 16, 1]",
    "WorkGroupShape": "WorkGroup, a list such as [16, 16, 1]",
    "ThreadTileEdge": "ThreadTile, a list such as [4, 4]",
    "ThreadTileNumElements": "ThreadTile, a list such as [4, 4]",
    "ThreadTileShape": "ThreadTile, a list such as [4, 4]",
    "LdsBlockSizePerPad": "LdsPad",
    "LdsBlockSizePerPadA": "LdsPad",
    "LdsBlockSizePerPadB": "LdsPad",
    "LdsPadA": "LdsPad",
    "LdsPadB": "LdsPad",
}
"""Parameters that Tensile itself renamed or replaced, and parameters with another name here, each with the replacement.
A replacement names parameters that some kernel here has."""

FOREIGN_PARAMETERS = _names(
    """
    1LDSBuffer AggressivePerfMode AssertAlphaValue AssertBetaValue AssertFree0ElementMultiple AssertFree1ElementMultiple
    AssertSummationElementMultiple AtomicAddC BufferLoad BufferStore CheckDimOverflow CustomKernelName CustomKernels
    DepthULdsDivisor DepthUSplit DirectToLds DirectToVgprA DirectToVgprB DisableAtomicFail DisableKernelPieces
    DisableVgprOverlapping EdgeMultiKernel ExpandPointerSwap Fp16AltImpl FractionalLoad GlobalRead2A GlobalReadPerMfma
    GlobalReadVectorWidth GlobalSplitUAlgorithm GlobalSplitUSummationAssignmentRoundRobin
    GlobalSplitUWorkGroupMappingRoundRobin GroupLoadStore ISA InnerUnroll InterleaveAlpha LdcEqualsLdd
    LdsInitCVgprs LocalDotLayout LocalRead2A
    LocalReadVectorWidth LocalWriteCoalesceGroupA LocalWriteCoalesceGroupB LocalWritePerMfma LoopDoWhile LoopTail
    MACInstruction MIArchVgpr MagicDivAlg MatrixInstruction MaxOccupancy MaxVgprNumber MinVgprNumber
    NoReject NonTemporalA NonTemporalB NonTemporalC NonTemporalD NumElementsPerBatchStore OptNoLoadLoop
    PackBatchDims PackFreeDims PackGranularity PackSummationDims PerformanceSyncLocation PerformanceWaitCount
    PerformanceWaitLocation PersistentKernel PersistentKernelAlongBatch PrefetchAcrossPersistent PrefetchLocalRead
    PreloadKernelArguments ReplacementKernel ScheduleGlobalRead ScheduleIterAlg ScheduleLocalWrite SetPrioWorkaround
    SourceSwap StaggerU StaggerUMapping StaggerUStride StoreCInUnroll StorePriorityOpt StoreRemapVectorWidth
    StoreSyncOpt StoreVectorWidth StreamK StreamKAtomic StreamKXCCMapping SuppressNoLoadLoop ThreadSeparateGlobalReadA
    ThreadSeparateGlobalReadB TransposeLDS TryRemoveLDS UnrollIncIsDepthU UnrollMemFence Use64bShadowLimit
    UseInstOffsetForGRO UseSgprForGRO VectorAtomicWidth VectorStore WaveSeparateGlobalReadA WaveSeparateGlobalReadB
    WavefrontSize WorkGroupMappingType WorkGroupSchedule
    """
)
"""Parameters of Tensile's kernels. Look a name up in the space first, which has those that a kernel here has, too."""
