"""The bench's processes: the workers that time, the compilers, and what the parent says to them."""
