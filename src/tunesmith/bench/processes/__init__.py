"""The bench's processes: the workers that time, the compilers, and the parent's messages to them."""
