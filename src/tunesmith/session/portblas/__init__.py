"""The commands of `tunesmith portblas`: tuning with portBLAS's parameters, and generating its lists and sources."""
