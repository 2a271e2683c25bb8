"""GEMM in CUDA C++, compiled by NVRTC."""
