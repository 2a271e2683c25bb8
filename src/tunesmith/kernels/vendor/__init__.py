"""What a device's vendor computes itself, as a family among the others: the row of reference in every table."""

from .blas import VendorBlas

__all__ = ["VendorBlas"]
