"""What no CUDA device since Maxwell exceeds. Source: CUDA C++ programming guide, technical specifications."""

MOST_WORK_GROUPS = (2**31 - 1, 65535, 65535)
"""Of one launch, along x, y and z."""

REGISTERS_PER_BLOCK = 65536
"""32-bit registers that one work-group can have."""

SHARED_RESERVED = 1024
"""Bytes of a multiprocessor's shared memory that each work-group takes beside its own, and that a multiprocessor has
beyond what one work-group can have; since compute capability 8.0."""

DECLARED_SHARED_BYTES = 48 * 1024
"""Shared memory that a source may declare with a size; more must come with the launch."""
