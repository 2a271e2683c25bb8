"""Every legal candidate, in order."""

from __future__ import annotations

import numpy as np

from ._base import Candidates, Search, Strategy, Walk


class Exhaustive(Strategy):
    """Every legal candidate once, in the order of their numbers."""

    name = "exhaustive"

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return Walk(candidates.among(iter(range(candidates.combinations))))
