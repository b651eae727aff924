"""The gateway's port: a key is shown only on request."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict

import pytest

from enfold.llm.calls import Connection, Secret

KEY = "sk-very-secret"


@pytest.mark.parametrize("form", ["{}", "{!s}", "{!r}"])
def test_a_connection_never_shows_its_key(form: str) -> None:
    connection = Connection("openai", "gpt-4o", Secret(KEY))
    assert KEY not in form.format(connection)
    assert KEY not in form.format(connection.key)
    assert connection.key is not None
    assert connection.key.reveal() == KEY


def test_a_secret_goes_into_no_file() -> None:
    with pytest.raises(TypeError):
        json.dumps(Secret(KEY))
    with pytest.raises(TypeError, match="a secret cannot be pickled"):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError, match="a secret cannot be pickled"):
        asdict(Connection("openai", "gpt-4o", Secret(KEY)))


def test_a_connection_is_named_as_people_write_it() -> None:
    assert Connection("openai", "gpt-4o").name == "openai:gpt-4o"
