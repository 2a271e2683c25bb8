"""Lists of GEMMs made by design, on which a choice model is fitted."""
