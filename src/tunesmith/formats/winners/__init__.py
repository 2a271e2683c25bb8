"""Readers of tuned kernels: tables and specs of other tools, and the tables of our own final steps."""
