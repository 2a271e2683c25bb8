"""tunesmith: tune once, ship the logic, launch the best kernel."""

__version__ = "0.1.0"
