"""GEMM kernels: D = alpha op(A) op(B) + beta C. `tunesmith.kernels` finds the families."""
