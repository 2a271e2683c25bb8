"""Files of random-number tuning: benchmarks read and written, rocRAND's headers written."""
