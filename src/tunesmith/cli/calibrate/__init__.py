"""The commands of `tunesmith calibrate`."""
