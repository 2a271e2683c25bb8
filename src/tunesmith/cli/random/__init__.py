"""The commands of `tunesmith random`."""
