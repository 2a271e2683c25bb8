"""Calibrating, sweeping and explaining stream-K."""
