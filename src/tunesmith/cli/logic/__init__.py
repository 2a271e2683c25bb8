"""The commands of `tunesmith logic`."""
