"""GEMM in OpenCL C 1.2: tiles staged through local memory (`TiledGemm`) or kept in registers (`RegisterGemm`)."""

from .register import RegisterGemm
from .tiled import TiledGemm

__all__ = ["RegisterGemm", "TiledGemm"]
