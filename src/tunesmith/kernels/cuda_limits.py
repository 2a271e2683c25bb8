"""Limits of every CUDA device since Maxwell. Source: CUDA C++ programming guide, technical specifications."""

MOST_WORK_GROUPS = (2**31 - 1, 65535, 65535)
"""Work-groups of one launch, along x, y and z."""

REGISTERS_PER_BLOCK = 65536
"""32-bit registers of one work-group, at most."""

SHARED_RESERVED = 1024
"""Bytes of shared memory that each work-group takes beside its own. A multiprocessor has as many bytes more than one
work-group can have. Since compute capability 8.0."""

DECLARED_SHARED_BYTES = 48 * 1024
"""Bytes of shared memory that a source may declare with a size; a launch must ask for more."""
