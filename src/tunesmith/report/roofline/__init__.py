"""What `tunesmith characterize` and `calibrate roofline` print, as text, as JSON objects and as SVG."""
