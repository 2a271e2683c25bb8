"""Which tile for a product that nobody tuned? Its size and its arithmetic intensity, and rules that decide by them."""
