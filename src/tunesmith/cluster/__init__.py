"""More devices, more hosts: a bench whose devices are worker processes of a Dask cluster (`tunesmith[cluster]`).

Only this file may be imported without Dask.
"""

from __future__ import annotations

from importlib.util import find_spec

from tunesmith.records import UserError


def require_dask(option: str) -> None:
    """Raise the UserError with the remedy if Dask is not installed. `option` is what needs it."""
    if find_spec("distributed") is None:
        raise UserError(option, "needs Dask, which is not installed", "pip install 'tunesmith[cluster]'")
