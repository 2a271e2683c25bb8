"""Tensile's files (ROCm/Tensile): tuning files of every era, and library logic."""
