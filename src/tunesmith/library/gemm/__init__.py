"""`matmul`: turns a call's arrays into a GEMM's problem and operands."""
