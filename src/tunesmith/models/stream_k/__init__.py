"""How a stream-K kernel is launched for each product: which grid, and how many tiles are split."""
