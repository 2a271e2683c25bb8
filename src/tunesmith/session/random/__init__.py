"""Launch shapes of random generators."""
