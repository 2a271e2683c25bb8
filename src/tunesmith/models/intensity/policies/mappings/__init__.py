"""What carries the macro tile, the depth, the work-group and the stages of each kernel family: one mapping for each."""

from .base import FamilyMapping
from .registry import MAPPINGS, mapping_of

__all__ = ["MAPPINGS", "FamilyMapping", "mapping_of"]
