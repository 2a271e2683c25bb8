"""GEMM in OpenCL C 1.2: tiles staged through local memory (`TiledGemm`) or kept in registers (`RegisterGemm`), and
blocks that fit a CPU's caches (`BlockedGemm`)."""

from .blocked import BlockedGemm
from .register import RegisterGemm
from .tiled import TiledGemm

__all__ = ["BlockedGemm", "RegisterGemm", "TiledGemm"]
