"""Which launch shape for a generator of random numbers on an architecture: `choice.choose`, from measured rows."""
