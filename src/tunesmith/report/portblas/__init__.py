"""What `tunesmith portblas` prints, as text and as JSON objects."""
