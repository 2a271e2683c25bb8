"""What the commands `heuristics fit` and `heuristics audit` do, from files to what is printed and written."""
