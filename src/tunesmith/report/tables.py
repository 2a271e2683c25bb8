"""Facts as text for a terminal: a function a command."""

from ._choice import choice
from ._comparison import comparison
from ._devices import devices
from ._outcome import outcome
from ._plan import plan
from ._summary import summary

__all__ = ["choice", "comparison", "devices", "outcome", "plan", "summary"]
