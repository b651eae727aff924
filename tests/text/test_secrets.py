"""Secrets: one table hides them in logs, receipts, summaries and recall."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.text.items import extract
from enfold.text.secrets import HIDDEN, KEY, hide, hide_in_log

RANDOM = "a1B2c3D4e5F6g7H8j9K0"
KEYS = [
    f"sk-{RANDOM}",
    f"sk-ant-api03-{RANDOM}",
    f"gsk_{RANDOM}",
    f"xai-{RANDOM}",
    f"enf_{RANDOM}",
    f"AIzaSy{RANDOM}",
    f"ghp_{RANDOM}",
    f"pplx-{RANDOM}",
    f"nvapi-{RANDOM}",
    f"hf_{RANDOM}",
    f"eyJhbGciOiJI.eyJzdWIi.{RANDOM}",
    "AKIAABCDEFGHIJKLMNOP",
    f"whsec_{RANDOM}",
    f"tvly-{RANDOM}",
    f"secret_{RANDOM}",
    f"dckr_pat_{RANDOM}",
    f"hvs.{RANDOM}wxyz",
    f"dp.pt.{RANDOM}wxyz",
    f"ATATT3xFfGF0{RANDOM}",
    f"123456789:AA{RANDOM}abcdefghijklm",
    "key-0123456789abcdef0123456789abcdef",
]


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_hidden_everywhere(key: str) -> None:
    text = f"We set the key {key} in config.toml today."
    assert hide(text) == hide_in_log(text) == "We set the key *** in config.toml today."
    items = [item for items in extract(text).values() for item in items]
    assert "config.toml" in items
    assert not [item for item in items if RANDOM in item or key in item]


@given(st.from_regex(KEY))
def test_every_form_of_a_key_is_hidden(text: str) -> None:
    assert HIDDEN in hide(text)


def test_passwords_and_private_keys_are_hidden() -> None:
    assert "s3cret" not in hide("postgresql://enfold:s3cret@host/name and password: s3cret-9x")
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"
    assert "MIIEow" not in hide(f"before\n{block}\nafter")
    assert hide(f"before\n{block}\nafter").endswith("after")
    hook = f"https://hooks.slack.com/services/T01/B02/{RANDOM}"
    assert hide(f"Post to {hook}.") == "Post to https://hooks.slack.com/services/***."


@pytest.mark.parametrize(
    "text",
    [
        "The class sk-estimator-doc-link is in the page.",
        "password: required, token: none, key = value",
        "for token in tokens: count(token)",
        "Line 12 of task-scheduler.py costs 1,000 tokens.",
        "https://example.org:8080/a@b",
        "pa-rtial, secret_sauce_of_the_kitchen_of_2024 and vercel_deployment are names.",
    ],
)
def test_usual_text_stays(text: str) -> None:
    assert hide(text) == text
