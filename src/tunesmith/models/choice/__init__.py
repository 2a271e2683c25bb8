"""Which solution for a product that nobody tuned? Expected times of a logic's solutions, with their doubt."""
