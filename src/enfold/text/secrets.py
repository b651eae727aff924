"""Secrets: keys, tokens and passwords in a text, by their form or by the name before them.

One table for all uses: the log, the items of a receipt, summaries and recall.
"""

from __future__ import annotations

import re

from enfold.text.grammar import lines_with

HIDDEN = "***"

_DIGIT = r"(?=[\w-]{0,200}\d)"
_KEY_FORMS = (
    rf"(?:sk|pk|rk|csk)[-_]{_DIGIT}[\w-]{{12,}}",  # OpenAI, Anthropic, OpenRouter, Stripe, Cerebras
    r"enf_[\w-]{8,}",  # enfold
    rf"(?:gsk_|xai-|pplx-|nvapi-|tgp_v1_|r8_|fw_|lsv2_){_DIGIT}[\w-]{{8,}}",  # further providers
    # Slack, PlanetScale; Stripe, Linear, Notion, Supabase, Tavily, Docker, Vercel, Voyage
    rf"(?:xapp-|pscale_){_DIGIT}[\w-]{{20,}}",
    rf"(?:whsec|lin_api|ntn|secret|sbp|tvly|dckr_pat|vercel|pa)[-_]{_DIGIT}[A-Za-z0-9]{{20,}}",
    r"(?:hv[sb]|dp\.[a-z]{2}|AQ)\.(?=[\w-]{0,200}\d)[\w-]{24,}",  # Vault, Doppler, Google
    r"ATATT3[\w=-]{20,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]+",
    r"\d{8,10}:AA[\w-]{33}",  # Telegram
    r"(?:SK|key-)[0-9a-f]{32}(?!\w)",  # Twilio, Mailgun
    r"AIza[\w-]{20,}",
    r"ya29\.[\w.-]+",
    r"gh[pousr]_\w{16,}",
    r"github_pat_\w+",
    r"glpat-[\w-]+",
    r"xox[abeprs]-[\w-]+",
    r"(?:AKIA|ASIA)[0-9A-Z]{12,}",
    r"eyJ[\w-]{8,}(?:\.[\w-]+){0,2}",
    r"hf_\w{16,}",
    r"npm_\w{16,}",
    r"pypi-[\w-]{16,}",
    r"dop_v1_\w{16,}",
    r"shp(?:at|ss|ca)_\w{16,}",
    r"dapi[0-9a-f]{32}",
    r"SG\.[\w.-]{16,}",
)
"""Forms of keys. A form that could be a usual word needs a digit."""
KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_KEY_FORMS)})")
_KEY_MARKS = (
    *("_", "-", "SK", "eyJ", "dapi", "AIza", "ya29.", "AKIA", "ASIA", "ATATT3", ":AA"),
    *("hvs.", "hvb.", "dp.", "AQ.", "SG."),
)
"""Every form of a key has one of these; most texts have none."""
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----).*?(?:(-----END [A-Z ]{0,30}PRIVATE KEY-----)|\Z)",
    re.DOTALL,
)
_PRIVATE_KEY_LINES = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----((?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+)"
)
_URL_PASSWORD = re.compile(r"(://[^/\s:@]{0,100}:)[^@\s/]{1,200}(?=@)")
_WEBHOOK = re.compile(
    r"(://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/)[\w/-]+"
)

_ASSIGNMENT = r"[\"'\\]{0,3}[ \t]?[:=][ \t]?[\"'\\]{0,3}(?:Bearer |Basic )?"
ASSIGNED = re.compile(
    r"(?:[Ss]ecret|SECRET|[Pp]assw(?:or)?d|PASSW(?:OR)?D|[Cc]redentials?|[Aa]uthorization)"
    rf"{_ASSIGNMENT}([^\s\"',;)}}\]&]{{6,200}}+)"
    r"|Bearer ([^\s\"',;)}\]&]{12,200}+)|(?:-u|--user)[ =][\"']?[^\s:\"']{1,60}+:([^\s\"']{4,200}+)"
    rf"|(?:[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ig(?:nature)?){_ASSIGNMENT}"
    r"((?=[^\s\d]{0,200}\d)(?=[^\sA-Za-z]{0,200}[A-Za-z])[^\s\"',;)}\]&/.]{12,200}+)"
)
"""A value with a name such as `key`, `token` or `password`."""
_SIGNS = (":", "=", "earer ")
"""A value with a name has one of these."""
_WORDS = (
    *("ecret", "ECRET", "assw", "ASSW", "redential", "uthorization", "earer "),
    *("key", "Key", "KEY", "oken", "TOKEN", "ignature", "sig", "Sig", "-u", "--user"),
)
_LOGGED = re.compile(
    r"(?i)(/t/)[^/\s\"']+"
    r"|(bearer\s+|x-api-key\s*[:=]\s*|api[_-]?key\s*[:=]\s*|token\s*[:=]\s*)[^\s\"',;]+"
    r"|\b(sk-|pk-|rk-|gsk_|xai-)[\w-]{8,}"
)
"""Values in a log line, which has no text of a conversation: any value after such a name."""


def assigned_values(text: str) -> frozenset[str]:
    """Return the values that follow a name such as `password`."""
    if not any(sign in text for sign in _SIGNS):  # as in most messages
        return frozenset()
    found = ASSIGNED.findall(lines_with(text, *_WORDS))
    return frozenset(value for values in found for value in values if value)


def private_keys(text: str) -> tuple[str, ...]:
    """Return the private keys in a text, without the lines around them."""
    return tuple(_PRIVATE_KEY_LINES.findall(text)) if "PRIVATE KEY" in text else ()


def hide(text: str) -> str:
    """Return the text with asterisks in place of keys, tokens and passwords.

    A value after a name such as `password` is hidden only if it looks random: prose such as
    "password: required" stays.
    """
    shown = KEY.sub(HIDDEN, text) if any(map(text.__contains__, _KEY_MARKS)) else text
    if "PRIVATE KEY" in shown:
        shown = _PRIVATE_KEY.sub(lambda match: f"{match[1]}{HIDDEN}{match[2] or ''}", shown)
    if "://" in shown:
        shown = _WEBHOOK.sub(rf"\1{HIDDEN}", _URL_PASSWORD.sub(rf"\1{HIDDEN}", shown))
    values = sorted(filter(_looks_random, assigned_values(shown)), key=len, reverse=True)
    for value in values:
        shown = shown.replace(value, HIDDEN)
    return shown


def hide_in_log(text: str) -> str:
    """Return a log line without secrets; any value after a name such as `token` is one."""
    shown = hide(text)
    return _LOGGED.sub(lambda match: next(filter(None, match.groups())) + HIDDEN, shown)


def _looks_random(value: str) -> bool:
    """Return True for a value with a digit among letters or signs, unless it is hidden already."""
    has_digit = any(letter.isdigit() for letter in value)
    return has_digit and not value.isdigit() and HIDDEN not in value
