"""Fits cut points and trees that choose a configuration by a product's size, and judges them on held-out products."""
