"""How a stream-K kernel is launched for each product: on how many work-groups, and how many tiles run stream-K.

Both numbers are decided at run time, in this order:

1. `library/launch/_stream_k.py` (a launch) and `open.py` (a measurement) find that a solution leaves its grid open.
2. `launch.py`: `Deciding.solutions` returns the solution with the decided parameters.
3. `predict.py`: `Model.decide` makes the decision. An override from the environment (`override.py`) comes first,
   then the calibrated model (`costs.py`: `Scan.best`), and without a calibration the portable ratios (`portable.py`:
   `choice`).

| modules | what they hold |
|---|---|
| `records.py` | `Work` in, `StreamKChoice` and `StreamKDecision` out |
| `costs.py`, `memory_demand.py` | the calibrated model: its terms, and the waiting for memory |
| `portable.py`, `tensile.py` | ratios for a device without a calibration; Tensile's predictor, to compare with |
| `runs.py`, `fit.py`, `calibration.py`, `file.py` | calibrating: what to measure, the fit, its result, the YAML file |
"""
