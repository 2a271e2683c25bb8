"""tunesmith: tune once, ship the logic, launch the best kernel."""
