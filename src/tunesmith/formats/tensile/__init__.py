"""Tensile's files."""
