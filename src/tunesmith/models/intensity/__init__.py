"""Chooses a tile for a product that was never tuned, by rules on its sizes and its arithmetic intensity."""
