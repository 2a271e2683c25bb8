"""Fitting a choice model to matrices of times, and scores of it on families that are held out."""
