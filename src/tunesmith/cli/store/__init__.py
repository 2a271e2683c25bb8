"""The commands of `tunesmith store`."""
