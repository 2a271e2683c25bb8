"""The work of the commands `heuristics fit`, `heuristics audit` and `heuristics judge`, from files to results."""
