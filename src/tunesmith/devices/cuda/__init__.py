"""NVIDIA GPUs: the CUDA driver, and cuBLAS."""
