"""The commands `calibrate stream-k`, `stream-k sweep` and `stream-k explain`."""
