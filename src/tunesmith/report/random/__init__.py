"""What `tunesmith random` prints, as text, as JSON objects and as SVG."""
