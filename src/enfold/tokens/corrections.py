"""Corrections: how many tokens of a model's own one counted token stands for.

Some models' tokenizers cannot be had locally. Their conversations are counted with another one,
exactly as ever, and a factor says how far that count lies below the model's own. The factor divides
the LIMIT that a decision compares with. It never multiplies a count: a stored count is exact, and
stays comparable with every other count of its tokenizer.

The figures are tokens for each token of `o200k_base`. Beside them what was measured: the mean, the
lowest and the highest of fifteen collections of real conversations (chats, meetings and coding
agents' transcripts, in English and Chinese).

| models | figure | mean | from – to | counted with |
|---|---|---|---|---|
| Claude up to 4.6 | 1.18 | 1.19 | 1.02 – 1.48 | ctok, which agrees with Anthropic's own counts |
| Claude 4.7 and later | 1.43 | 1.51 | 1.39 – 1.67 | ctok; the figure is that of source code |
| Gemini, Gemma | 1.15 | 1.09 | 0.92 – 1.18 | Gemma 3's vocabulary; the figure is that of agents |
| Mistral | 1.10 | 1.10 | 1.00 – 1.22 | its vocabulary |
| GPT-4, GPT-3.5 | 1.05 | 1.04 | 0.98 – 1.41 | `cl100k_base`; Chinese is highest |
| Qwen | 1.05 | 1.04 | 0.88 – 1.11 | its vocabulary |
| Llama, DeepSeek, GLM, Kimi | 1.02 | 0.99 | 0.79 – 1.06 | their vocabularies |

A conversation can lie above its figure: that is what a budget's safety margin is for. For Claude,
the extra `enfold[claude]` counts exactly instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from enfold.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Correction:
    """What a limit is divided by, and why."""

    factor: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Family:
    label: str
    figure: float
    own_tokenizer: str | None = None
    """The tokenizer of ours that counts as these models do."""


_CLAUDE_TO_4_6 = _Family("Claude up to 4.6", 1.18, "claude-3")
_CLAUDE_FROM_4_7 = _Family("Claude 4.7 and later", 1.43, "claude")
_GPT = _Family("OpenAI's models from GPT-4o on", 1.0, "o200k_base")

_FAMILIES: tuple[tuple[re.Pattern[str], _Family], ...] = (
    (re.compile("gemini|gemma"), _Family("Gemini", 1.15)),
    (re.compile("mistral|mixtral|codestral|devstral|magistral"), _Family("Mistral", 1.10)),
    (re.compile("qwen|qwq"), _Family("Qwen", 1.05)),
    (re.compile("(?<!o)llama|deepseek|glm|kimi"), _Family("Llama, DeepSeek, GLM and Kimi", 1.02)),
    (re.compile(r"gpt-?(3\.?5|4(?!o|\.|\d))"), _Family("GPT-4 and GPT-3.5", 1.05, "cl100k_base")),
    (re.compile(r"gpt|openai|azure|(^|[:/])o\d"), _GPT),
    (re.compile("^google|^vertex"), _Family("Gemini", 1.15)),
)
"""The first whose pattern is found in `provider:model` is the model's family."""

_TOKENIZER_FIGURES = {
    "o200k_base": 1.0,
    "cl100k_base": 1.0,
    "claude-3": _CLAUDE_TO_4_6.figure,
    "claude": _CLAUDE_FROM_4_7.figure,
    "chars4": 0.92,
}
"""What each tokenizer counts at least, as a rule, for a token of `o200k_base`."""

_CLAUDE_VERSION = re.compile(r"claude\D*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def correction(provider: str, model: str, tokenizer: str = "o200k_base") -> Correction:
    """The correction for conversations of a model that are counted with a tokenizer."""
    if tokenizer not in _TOKENIZER_FIGURES:
        raise ConfigError(f"no tokenizer {tokenizer!r}; there are {', '.join(_TOKENIZER_FIGURES)}")
    family = _family_of(f"{provider}:{model}".lower())
    if family is None:
        return Correction(1.0, f"how {provider}:{model} counts is not known; {tokenizer} stands in")
    if family.own_tokenizer == tokenizer:
        return Correction(1.0, f"{family.label}: {tokenizer} is exact")
    factor = round(family.figure / _TOKENIZER_FIGURES[tokenizer], 2)
    if factor <= 1:
        return Correction(1.0, f"{family.label}: {tokenizer} counts no less")
    return Correction(factor, f"{family.label}: about {factor:g} tokens for each of {tokenizer}")


def _family_of(name: str) -> _Family | None:
    if "claude" in name or "anthropic" in name:
        return _claude_family(name)
    return next((family for pattern, family in _FAMILIES if pattern.search(name)), None)


def _claude_family(name: str) -> _Family:
    """By version; a name without one is taken for the latest, whose limit is the tightest."""
    found = _CLAUDE_VERSION.search(name)
    if found is None:
        return _CLAUDE_FROM_4_7
    version = (int(found[1]), int(found[2] or 0))
    return _CLAUDE_TO_4_6 if version < (4, 7) else _CLAUDE_FROM_4_7
