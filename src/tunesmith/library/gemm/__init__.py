"""`matmul`: a call's arrays turned into a GEMM's problem and operands."""
