"""GEMM kernels: D = alpha op(A) op(B) + beta C. Families are found through `tunesmith.kernels`."""
