"""The providers of models: one row of facts for each.

A new provider is a row here and a function in `clients` that sets up its client library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from enfold.errors import ConfigError
from enfold.wire import WIRES, has_inline_system

ModelListFormat: TypeAlias = Literal["list", "max_input_tokens", "inputTokenLimit"]


@dataclass(frozen=True, slots=True)
class ModelList:
    """The address at which a provider states the limits of its models."""

    base_url: str
    """Empty: the profile's base URL."""
    path: str = "/models"
    """`{model}` stands for the model's name."""
    names_path: str = "/models"
    """The path of the list of all models' names."""
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    format: ModelListFormat = "list"
    """A list of models, or one model with its limit in the named field."""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider."""

    id: str
    title: str
    key_variables: tuple[str, ...] = ()
    """The environment variables that usually hold the key; the first that is set is used."""
    needs_key: bool = True
    """False: it works without a key, or finds credentials on the machine."""
    cheap_model: str | None = None
    """The model that summarizes for a profile that names no other. None: unknown."""
    default_model: str | None = None
    """The model that a new profile is offered first. None: the first that the server lists."""
    needs_base_url: bool = False
    options: tuple[str, ...] = ()
    """The options that a profile may set, such as a region."""
    needs_options: tuple[str, ...] = ()
    """The options that a profile must set."""
    dialect: str = "openai"
    """The dialect whose rules its models follow."""
    fetches_images: bool = True
    """True: the provider fetches an image from its address."""
    price_library_id: str | None = None
    """Its name in the price library, if that is another."""
    model_list: ModelList | None = None
    """None: the provider does not state limits."""

    @property
    def has_inline_system(self) -> bool:
        """True if a system message may stand inside a conversation."""
        return has_inline_system(self.dialect)


PROVIDERS: Mapping[str, Provider] = {
    row.id: row
    for row in (
        Provider(
            "openai",
            "OpenAI",
            ("OPENAI_API_KEY",),
            cheap_model="gpt-4o-mini",
            default_model="gpt-5",
            model_list=ModelList(f"{WIRES['openai'].address}/v1"),
        ),
        Provider(
            "anthropic",
            "Anthropic",
            ("ANTHROPIC_API_KEY",),
            cheap_model="claude-haiku-4-5",
            default_model="claude-sonnet-4-5-20250929",
            dialect="anthropic",
            model_list=ModelList(
                WIRES["anthropic"].address,
                "/v1/models/{model}",
                "/v1/models",
                "x-api-key",
                "",
                "max_input_tokens",
                (("anthropic-version", "2023-06-01"),),
            ),
        ),
        Provider(
            "google",
            "Google Gemini",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            cheap_model="gemini-2.5-flash",
            default_model="gemini-2.5-flash",
            dialect="gemini",
            fetches_images=False,
            model_list=ModelList(
                WIRES["gemini"].address,
                "/v1beta/models/{model}",
                "/v1beta/models",
                "x-goog-api-key",
                "",
                "inputTokenLimit",
            ),
        ),
        Provider(
            "azure",
            "Azure OpenAI",
            ("AZURE_OPENAI_API_KEY",),
            cheap_model="gpt-4o-mini",  # a deployment, which may have another name
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
            dialect="anthropic",
            fetches_images=False,
            price_library_id="aws",
        ),
        Provider(
            "vertex",
            "Google Vertex AI",
            needs_key=False,
            cheap_model="gemini-2.5-flash",
            options=("project", "region"),
            dialect="gemini",
            fetches_images=False,
            price_library_id="google",
        ),
        Provider(
            "openrouter",
            "OpenRouter",
            ("OPENROUTER_API_KEY",),
            cheap_model="openai/gpt-4o-mini",
            default_model="openai/gpt-4o",
            model_list=ModelList("https://openrouter.ai/api/v1"),
        ),
        Provider(
            "compatible",
            "Any server with OpenAI's protocol, such as Ollama, llama.cpp or vLLM",
            needs_key=False,
            needs_base_url=True,
            model_list=ModelList(""),
        ),
    )
}
"""All providers, by the name that profiles use."""
MAJOR_PROVIDERS = ("openai", "anthropic", "google")
"""The providers whose current models are listed."""
DEFAULT_DIALECT = "openai"
_PRICE_LIBRARY_ALIASES = {"gemini": "google"}


def provider(name: str) -> Provider:
    """Return the provider with that name."""
    if name not in PROVIDERS:
        raise ConfigError(f"no provider {name!r}; available: {', '.join(PROVIDERS)}")
    return PROVIDERS[name]


def dialect_of(name: str) -> str:
    """Return the dialect of a provider's models; the default for an unknown provider."""
    return PROVIDERS[name].dialect if name in PROVIDERS else DEFAULT_DIALECT


def price_library_id(name: str) -> str:
    """Return the provider's name in the price library."""
    row = PROVIDERS.get(name)
    listed = row.price_library_id if row is not None else _PRICE_LIBRARY_ALIASES.get(name)
    return listed or name
