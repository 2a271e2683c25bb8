"""From a choice to a launch: programs, plans, memory, streams, for the host's memory and a GPU's alike."""
