"""The command line: one file a command, no logic of its own."""
