"""The commands that show, ask and export library logic: Tensile's, and ours."""
