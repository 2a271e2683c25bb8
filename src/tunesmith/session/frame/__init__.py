"""One run: the work of one command in one folder, whatever the command.

Where the decisions of a run are made:

- Which stored measurements are reused, and which are made again: `reuse.ReuseRule`. `measure.RecordedMeasure` looks
  cells up in the store and asks the rule.
- Whether two records are of the same device: `records.Target.same_device` (API, name and architecture). The key of a
  stored measurement (`store.measurement_key`) also holds the driver and the compiler.
- Which solution wins: the command's plan decides, not this folder. The plans of tuning files and of portBLAS use
  `protocol.choose`, random generators use `logic.random.choice.choose`, and a stream-K sweep uses `Swept.best`. A plan
  hands its winners to `logic.logic_output`, which adds the sizes that the logic file already had.
"""
