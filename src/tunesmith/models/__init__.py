"""What if it was never measured? Models that answer for a launch before it happens."""
