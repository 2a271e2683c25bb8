"""Chooses launch shapes for generators of random numbers on an architecture, from measured rows: `choice.choose`."""
