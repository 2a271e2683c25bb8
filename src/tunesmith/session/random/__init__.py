"""The commands of `tunesmith random`: launch shapes of random generators, measured, compiled or selected."""
