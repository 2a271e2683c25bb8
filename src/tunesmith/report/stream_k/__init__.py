"""What `tunesmith stream-k` and `calibrate stream-k` print, as text, as JSON objects and as SVG."""
