"""The lossless strategy: what a view says twice it says once, and padding goes.

No model is asked. Every step can be undone exactly: the ledger says where everything is.
"""

from enfold.strategies.lossless.config import Encodings, LosslessConfig, Obsolete
from enfold.strategies.lossless.strategy import KIND, Lossless, shorten

__all__ = ["KIND", "Encodings", "Lossless", "LosslessConfig", "Obsolete", "shorten"]
