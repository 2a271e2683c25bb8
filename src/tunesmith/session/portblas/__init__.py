"""Tuning with portBLAS's parameters, and making its lists and sources."""
