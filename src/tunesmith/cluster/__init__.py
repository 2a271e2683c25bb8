"""More devices, more hosts: a bench whose devices are worker processes of a Dask cluster (`tunesmith[cluster]`).

Only `needs_dask` may be imported without Dask.
"""
