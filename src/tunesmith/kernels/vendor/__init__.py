"""The vendor's own BLAS as a family among the others: the reference row of every table."""

from .blas import VendorBlas

__all__ = ["VendorBlas"]
