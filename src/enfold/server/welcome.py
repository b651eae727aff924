"""Welcome: a store that is new begins with a sample conversation, once and never again."""

from __future__ import annotations

from enfold.engine import Engine
from enfold.sample import TITLE, sample_messages
from enfold.store import catalog

SAMPLE = "sample"
"""The session's name."""
_DAYS = 9
"""How long it is: most of the window of the model that is assumed where none is named."""
_SCOPE, _GIVEN = "welcome", "sample"
"""Where it is remembered that the sample was given."""


async def give_sample(engine: Engine) -> bool:
    """Put the sample into an empty store; whether it was put there.

    Whoever deletes it does not get it again, and whoever has conversations needs none.
    """
    given = await engine.store.read(catalog.settings, _SCOPE)
    if given or await engine.sessions(limit=1):
        return False
    await engine.store.write(catalog.put_setting, _SCOPE, _GIVEN, value=True)
    session = await engine.session(SAMPLE, title=TITLE)
    await session.append(*sample_messages(_DAYS))
    return True
