"""What `tunesmith heuristics` prints, as text, as JSON objects and as SVG."""
