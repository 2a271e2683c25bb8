"""A text with a configuration's kernels for all four transpositions, which compiles without tunesmith."""

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
    """The text, with entries gemm_nn, gemm_tn, gemm_nt and gemm_tt, and with reduce if K is split.

    It needs no compiler options. `language` is OpenCL or CUDA, `dtype` s, d or h. Vectors are made narrower if rows,
    columns or steps do not fill them. Arguments and launches are those of the family's plans. Raises UserError for a
    configuration that makes no kernel.
    """
    _check_choice("language", language, LANGUAGES)
    _check_choice("dtype", dtype, tuple(ELEMENTS))
    try:
        tiling = Tiling.of(configuration)
    except (KeyError, TypeError, ValueError) as error:
        remedy = "give all parameters of PortBlasGemm"
        raise UserError("configuration", f"lacks a parameter ({error})", remedy) from None
    _check_choice("PortBlasAlgorithm", tiling.algorithm, tuple(ALGORITHMS))
    algorithm = ALGORITHMS[tiling.algorithm]
    traits = ProgramTraits(dtype, False, False, use_beta=True, interleaved=algorithm.interleaved)
    if algorithm.is_staged and (wrong := wrong_depth(tiling, traits)):
        raise UserError("CacheLine", wrong.detail, f"give a multiple of {traits.element.size}")
    return program(algorithm, tiling, traits, language, ENTRIES)


def _check_choice(location: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(location, f"there is no {value!r}", f"give one of {', '.join(choices)}")
