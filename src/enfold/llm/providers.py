"""Providers: what is known of each one that models can be asked at.

A row says what a profile of that provider has to give, and which model condenses cheaply there. How
the provider is spoken to is the gateway's business; what the metadata library calls it is
`library`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from enfold.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider."""

    id: str
    title: str
    key_variables: tuple[str, ...] = ()
    """Where its key usually is in the environment; the first that is set counts."""
    needs_key: bool = True
    """False where it goes without one, or finds credentials of the machine itself."""
    cheap_model: str | None = None
    """What condenses for a profile that names no other. None: nothing is known to be there."""
    needs_base_url: bool = False
    options: tuple[str, ...] = ()
    """What a profile may say beside its model, such as a region."""
    needs_options: tuple[str, ...] = ()
    """What of these it must say."""


PROVIDERS: Mapping[str, Provider] = {
    each.id: each
    for each in (
        Provider("openai", "OpenAI", ("OPENAI_API_KEY",), cheap_model="gpt-4o-mini"),
        Provider("anthropic", "Anthropic", ("ANTHROPIC_API_KEY",), cheap_model="claude-haiku-4-5"),
        Provider(
            "google",
            "Google Gemini",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            cheap_model="gemini-2.5-flash",
        ),
        Provider(
            "azure",
            "Azure OpenAI",
            ("AZURE_OPENAI_API_KEY",),
            cheap_model="gpt-4o-mini",  # models are deployments there: it may be called otherwise
            needs_base_url=True,
            options=("api_version",),
        ),
        Provider(
            "bedrock",
            "Amazon Bedrock",
            ("AWS_BEARER_TOKEN_BEDROCK",),
            needs_key=False,
            cheap_model="global.anthropic.claude-haiku-4-5-20251001-v1:0",
            options=("region", "access_key_id"),
            needs_options=("region",),
        ),
        Provider(
            "vertex",
            "Google Vertex AI",
            needs_key=False,
            cheap_model="gemini-2.5-flash",
            options=("project", "region"),
        ),
        Provider(
            "openrouter", "OpenRouter", ("OPENROUTER_API_KEY",), cheap_model="openai/gpt-4o-mini"
        ),
        Provider(
            "compatible",
            "Any server with OpenAI's protocol, such as Ollama, llama.cpp or vLLM",
            needs_key=False,
            needs_base_url=True,
        ),
    )
}
"""Every provider, by the name that profiles call it."""


def provider(name: str) -> Provider:
    """The provider of that name."""
    if name not in PROVIDERS:
        raise ConfigError(f"no provider {name!r}; there are {', '.join(PROVIDERS)}")
    return PROVIDERS[name]
