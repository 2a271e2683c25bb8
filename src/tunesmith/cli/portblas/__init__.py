"""The commands of `tunesmith portblas`."""
