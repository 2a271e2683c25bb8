"""How a stream-K kernel is launched for each product: on how many work-groups, and how many tiles run stream-K.

Both numbers are decided at run time, in this order:

1. `library/launch/_stream_k.py` (a launch) and `open_grids.py` (a measurement) find that a solution leaves its grid
   open.
2. `launch_decisions.py`: `LaunchDecisions.solutions` returns the solution with the decided parameters.
3. `decision_models.py`: `Model.decide` makes the decision. An override from the environment (`override.py`) comes
   first, then the calibrated model (`costs.py`: `Scan.best`), and without a calibration the portable ratios
   (`portable.py`: `choice`).

| modules | what they hold |
|---|---|
| `records.py` | `TiledProduct` in, `StreamKChoice` and `StreamKDecision` out |
| `costs.py`, `memory_demand.py` | the calibrated model: its terms, and the waiting for memory |
| `portable.py`, `tensile.py` | ratios for a device without a calibration; Tensile's predictor, to compare with |
| `runs.py`, `fit.py` | calibrating: what to measure, and the fit |
| `calibration.py`, `calibration_file.py` | a calibration, and its YAML file |
"""
