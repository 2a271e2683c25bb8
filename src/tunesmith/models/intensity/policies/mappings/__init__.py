"""Mappings: one for each kernel family, which turns a wished tile into parameters of the family."""

from .base import FamilyMapping
from .registry import MAPPINGS, mapping_of

__all__ = ["MAPPINGS", "FamilyMapping", "mapping_of"]
