"""The smart strategy: passes in order, each with its own selection, mode and operations.

`config` is what can be set, `decomposition` takes a message apart and puts it together,
`operations` says what becomes of content, `working` is the view between two passes, `passes` runs
one, `strategy` all of them.
"""

from enfold.strategies.smart.config import SmartConfig
from enfold.strategies.smart.decomposition import Decomposed, decompose, recompose
from enfold.strategies.smart.strategy import KIND, Smart

__all__ = ["KIND", "Decomposed", "Smart", "SmartConfig", "decompose", "recompose"]
