"""The commands of `tunesmith heuristics`."""
