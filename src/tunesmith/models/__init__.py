"""Models that predict or decide what was never measured: stream-K launches, configurations by size, rooflines."""
