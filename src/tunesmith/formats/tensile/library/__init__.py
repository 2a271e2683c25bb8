"""Tensile's library logic: which solution Tensile launches for which size.

`read.py` reads all forms of the file into records (`records.py`), `selection.py` chooses as Tensile's run time does,
`sizes.py` makes a list of problems from a file's exact sizes, and `export.py` writes our logic in the list form.
"""
