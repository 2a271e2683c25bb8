"""One text with the kernels of a configuration for all four transpositions, to be compiled without tunesmith."""

from __future__ import annotations

from tunesmith.records import Configuration, UserError

from .algorithms import ALGORITHMS
from .programs import EntryPoint, program
from .rules import wrong_depth
from .tiling import ELEMENTS, ProgramTraits, Tiling

LANGUAGES = ("OpenCL", "CUDA")
ENTRIES = tuple(
    EntryPoint(f"gemm_{a}{b}", transpose_a=a == "t", transpose_b=b == "t", suffix=f"_{a}{b}")
    for a, b in ("nn", "tn", "nt", "tt")
)


def standalone_source(configuration: Configuration, language: str = "OpenCL", dtype: str = "s") -> str:
    """The text, with entries gemm_nn, gemm_tn, gemm_nt and gemm_tt (and, where K is split, reduce); no options needed.

    `language` is OpenCL or CUDA, `dtype` s, d or h. Vectors that something does not fill are made narrower. Arguments
    and launches are those of the family's plans. Raises UserError for what makes no kernel.
    """
    _known("language", language, LANGUAGES)
    _known("dtype", dtype, tuple(ELEMENTS))
    try:
        tiling = Tiling.of(configuration)
    except (KeyError, TypeError, ValueError) as error:
        remedy = "give all parameters of PortBlasGemm"
        raise UserError("configuration", f"lacks a parameter ({error})", remedy) from None
    _known("PortBlasAlgorithm", tiling.algorithm, tuple(ALGORITHMS))
    algorithm = ALGORITHMS[tiling.algorithm]
    kind = ProgramTraits(dtype, False, False, use_beta=True, interleaved=algorithm.interleaved)
    if algorithm.in_stages and (wrong := wrong_depth(tiling, kind)):
        raise UserError("CacheLine", wrong.detail, f"give a multiple of {kind.element.size}")
    return program(algorithm, tiling, kind, language, ENTRIES)


def _known(location: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(location, f"there is no {value!r}", f"give one of {', '.join(known)}")
