"""A run: one command's work in one folder."""
