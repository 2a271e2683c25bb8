"""portBLAS's files: parameter files, the lists and results of its tuner, a header for its backends."""
