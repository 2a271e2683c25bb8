"""Problems in numbers that a rule can decide by, and the rooflines that these are compared with."""
