"""The commands of `tunesmith stream-k`."""
