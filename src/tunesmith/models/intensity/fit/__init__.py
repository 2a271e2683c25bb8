"""Cut points and trees that choose a tile by a product's size, fitted to tuned products and judged on others."""
