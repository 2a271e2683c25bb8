"""GEMM in Triton, compiled ahead of time. Importing the families does not need Triton."""
