"""A command's work from what was asked to what is written: the frame of every run, and a folder for each plan."""
