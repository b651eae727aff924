"""The state of a session at one moment: all that a decision needs, read in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

from enfold import wire
from enfold.budget import (
    DEFAULT_THRESHOLD,
    Decision,
    Load,
    Policy,
    Threshold,
    decide,
    resolve_threshold,
)
from enfold.errors import ConfigError, EnfoldError, InputError, NotFoundError
from enfold.identity import content_hash, digest
from enfold.jsontext import dump_text, dumps, loads
from enfold.llm.calls import Connection, Gateway
from enfold.llm.costs import detect
from enfold.llm.summarizer import ConversationPrefix
from enfold.messages import (
    Conversation,
    Data,
    Message,
    Part,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from enfold.modelconfig import ModelConfig
from enfold.receipt import RestorableBy
from enfold.records import (
    POINTS_TO,
    Edit,
    MessageDraft,
    SessionKey,
    SessionRecord,
    StoredMessage,
    SummaryPlace,
    Undo,
    ViewRows,
)
from enfold.retention import RECENT_MESSAGES_RATIO, Measure, Retention
from enfold.settings import ALIASES, Settings, change, resolve, retention_policy
from enfold.store import catalog, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.index import joined_parts, joined_terms
from enfold.store.snapshots import LONGEST_VIEW
from enfold.strategies import contract, presets
from enfold.strategies.presets import Preset
from enfold.summaries import summary_tokens
from enfold.tokens import (
    DEFAULT,
    count_conversation,
    count_messages,
    use_fastest_library_only,
)
from enfold.view import ShownMessage, View
from enfold.wire import estimate

MessageInput: TypeAlias = Message | Mapping[str, Any] | str
"""A message, a message of a dialect, or a text, which becomes a user message."""


@dataclass(frozen=True, slots=True)
class ClientModel:
    """A model that the caller provides with its own key, for one call."""

    gateway: Gateway
    connection: Connection
    config: ModelConfig | None = None
    """The model's limits, if they are known."""
    prefix: ConversationPrefix | None = None
    """The conversation as the model was sent it last; None if a transcript must be sent."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The rest of a request besides the history, and options of this call."""

    pending: tuple[Message, ...] = ()
    """The user's next input; not stored yet."""
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_output: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    static_tokens: tuple[int, int] = (0, 0)
    """Tokens of the system prompt and of the tools, if the caller has counted them."""
    client_model: ClientModel | None = None
    """The summarizer if neither a setting nor a profile names one."""
    writer: Connection | None = None
    """The model that writes the summary of this call, with the caller's key."""
    discards_cache: bool = False
    """True if the provider has the view in its prompt cache, so that a compression has a price."""
    must_pay: bool = False
    """True if a compression that frees too little is not recorded."""
    restorable_by: RestorableBy = "store"
    """The caller's way to restore content that leaves the view."""
    has_one_branch: bool = False
    """True if a shared summary may be written with a look at the messages after its cutoff."""
    requested_at: int | None = None
    """Time of a background request; a summary made since then is enough."""

    def load(self, history: int, estimated: int, tokenizer: str) -> Load:
        """Return the tokens of the whole request, for a history of this size."""
        prompt = Message("system", (Text(self.system),)) if self.system else None
        counted = count_conversation(
            Conversation(self.pending, system=prompt, tools=self.tools), tokenizer
        )
        of_prompt = counted.by_role.get("system", 0) if prompt is not None else 0
        return Load(
            history=history,
            system=of_prompt + self.static_tokens[0],
            tools=counted.tools + self.static_tokens[1],
            pending=counted.total - counted.tools - of_prompt,
            estimate=estimated + sum(map(estimate, self.pending)),
        )


def as_messages(given: Iterable[MessageInput], dialect: str = "auto") -> tuple[Message, ...]:
    """Return messages, mappings of a dialect and texts as messages."""
    return tuple(_as_message(one, dialect) for one in given)


def _as_message(given: MessageInput, dialect: str) -> Message:
    if isinstance(given, Message):
        return given
    if isinstance(given, str):
        return Message("user", (Text(given),))
    if isinstance(given, Mapping):
        (message,) = wire.parse([given], dialect).messages
        return message
    raise InputError(f"expected a message, a mapping or a text, found {type(given).__name__}")


BY_CUTOFF = {"share_across_branches": True}
"""The setting for proxied conversations. A client can send another branch at any time, so a summary
serves every branch with its cutoff."""
PRESETS = "presets"
"""The scope of the settings in which presets are saved."""
SETTLED = "settledMessages"
"""The field of a snapshot's content: the number of shown messages that its compression left."""
VARIANT = "promptVariant"
"""The field of a snapshot's content: the prompt of its summary while another one is on trial."""

_LONGEST_SEARCH_TEXT = 1_000_000
"""Characters of a message that can be searched."""
_LARGEST_WINDOW = 2_000_000
"""Tokens of the window of a model that is not configured, at most."""
_RECENT_VIEWS, _RECENT_TOKENS = 64, 1_000_000
"""Number and tokens of the views in memory, about ten bytes for a token."""
_DECODED = 4_096
"""Number of decoded messages in the cache."""


def drafts(messages: Sequence[Message], tokenizer: str) -> tuple[MessageDraft, ...]:
    """Return the messages as they are stored: exact bytes, counts, and the searchable text.

    Finding the terms of long texts takes seconds, in which no other message could be written.
    """
    counts = count_messages(messages, tokenizer)
    texts = [search_text(message) for message in messages]
    bodies = [dumps(wire.get(message.dialect).render_message(message)) for message in messages]
    return tuple(
        MessageDraft(
            role=message.role,
            dialect=message.dialect,
            body=body,
            content_hash=content_hash(message),
            tokens=tokens,
            tokenizer=tokenizer,
            estimate=estimate(message),
            search_text=text,
            search_terms=joined_terms(text),
            search_parts=joined_parts(text),
            digest=digest(body),
            client_id=message.id,
            name=message.name,
            created_at=None if message.at is None else round(message.at.timestamp() * 1000),
        )
        for message, body, text, tokens in zip(messages, bodies, texts, counts, strict=True)
    )


def read_drafts(
    given: Iterable[MessageInput], tokenizer: str, *, dialect: str = "auto"
) -> tuple[MessageDraft, ...]:
    """Return messages in any form as they are stored."""
    return drafts(as_messages(given, dialect), tokenizer)


def prepare_process() -> None:
    """Load what `read_drafts` needs, in a process that counts for a server."""
    use_fastest_library_only()
    read_drafts(("a",), DEFAULT)


def search_text(message: Message) -> str:
    """Return the searchable text of a message: its text, tool arguments and tool results.

    Only the beginning of a very long message is searchable, so that its index row is soon written.
    """
    return whole_text(message)[:_LONGEST_SEARCH_TEXT]


def whole_text(message: Message) -> str:
    """Return the text of a message with its tool arguments and tool results."""
    return "\n".join(_searchable(message.parts))


def _searchable(parts: Iterable[Part]) -> Iterable[str]:
    for part in parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield f"{name} {arguments if isinstance(arguments, str) else dump_text(arguments)}"
            case ToolResult(parts=inner):
                yield from _searchable(inner)
            case Data(value):
                yield dump_text(value)


@lru_cache(maxsize=_DECODED)
def _decode(dialect: str, body: bytes, created_at: int | None) -> Message:
    message = wire.get(dialect).parse_message(loads(body))
    if created_at is None:
        return message
    return replace(message, at=datetime.fromtimestamp(created_at / 1000, UTC))


def message_of(row: StoredMessage | Edit) -> Message:
    """Return a stored message or the edit of one, with the time of the message if it is known."""
    return _decode(row.dialect, row.body, row.created_at if row.is_dated else None)


def message_rows(rows: ViewRows) -> tuple[StoredMessage | Edit, ...]:
    """Return the rows of a view's messages, without the places of summaries."""
    return (*(row for row in rows.shown if not isinstance(row, SummaryPlace)), *rows.after)


def view_of(
    rows: ViewRows,
    tokenizer: str,
    summary_role: Role = "system",
    same: tuple[ShownMessage, ...] = (),
) -> View:
    """Return the view of the rows, with every count by the tokenizer.

    `same` are its first messages, if an earlier view has them.
    """
    at = next((i for i, row in enumerate(rows.shown) if isinstance(row, SummaryPlace)), 0)
    snapshot = rows.snapshot
    summary = snapshot.text if snapshot is not None else None
    all_rows = message_rows(rows)
    entries = len(all_rows) - len(rows.after)
    new = all_rows[len(same) :]
    shown = [_shown(row) for row in new]
    foreign = [i for i, row in enumerate(new) if row.tokenizer != tokenizer]
    counts = count_messages([shown[i].message for i in foreign], tokenizer)
    for index, tokens in zip(foreign, counts, strict=True):
        shown[index] = shown[index]._replace(tokens=tokens)
    return View(
        shown=(*same, *shown),
        tokenizer=tokenizer,
        tip=rows.tip,
        snapshot=snapshot.id if snapshot is not None else None,
        summary=summary,
        summary_tokens=summary_tokens(summary, tokenizer) if summary is not None else 0,
        summary_at=at,
        # All entries are settled if the compression did not record their number.
        settled=int(snapshot.content.get(SETTLED, entries)) if snapshot is not None else 0,
        covered=entries,
        cutoff=snapshot.cutoff if snapshot is not None else None,
        summary_role=summary_role,
    )


@dataclass(frozen=True, slots=True)
class RecentView:
    """A view and its rows, from which the next view of the session is made."""

    rows: ViewRows
    view: View
    state: RecentState | None = None
    """The state that the view is part of, if it need not be read again."""

    def first_of(self, rows: ViewRows, tokenizer: str) -> tuple[ShownMessage, ...]:
        """Return its messages if later rows begin with them, with the same counts; else none."""
        after = self.rows.after
        is_first = self.rows.shown is rows.shown and after == rows.after[: len(after)]
        return self.view.shown if is_first and tokenizer == self.view.tokenizer else ()


@dataclass(frozen=True, slots=True)
class RecentState:
    """A state of a session, and the version of the database that it was read from."""

    state: SessionState
    version: int
    call: Mapping[str, Any]
    """The settings of the call that it was read for."""
    tip: str | None
    """The branch that it was read for."""

    def is_of(self, version: int | None, call: Mapping[str, Any], tip: str | None) -> bool:
        """Return True if a read for this call and branch would return the same state."""
        return (version, call, tip) == (self.version, self.call, self.tip)

    def after(self, appended: tree.Appended, version: int) -> RecentState | None:
        """Return the state after new messages at the current tip; None if it must be read."""
        rows, messages = self.state.rows, appended.messages
        if self.tip is not None or appended.moved_at is None or appended.recognised:
            return None
        last = messages[-1]
        above = rows.depth - len(rows.after)
        if rows.skipped or messages[0].parent != rows.tip or last.depth - above > LONGEST_VIEW:
            return None
        record = replace(
            rows.session,
            tip=last.id,
            depth=last.depth,
            tokens=last.path_tokens,
            updated_at=appended.moved_at,
        )
        new = replace(
            rows, session=record, tip=last.id, depth=last.depth, after=rows.after + messages
        )
        return replace(self, state=replace(self.state, rows=new), version=version)


class RecentViews:
    """The last views of some sessions. A turn reads and decodes only the messages after them."""

    def __init__(self) -> None:
        self._views: dict[SessionKey, RecentView] = {}
        self._tokens = 0

    def get(self, key: SessionKey) -> RecentView | None:
        """Return the last view of a session, if it is still there."""
        return self._views.get(key)

    def state_of(self, key: SessionKey) -> RecentState | None:
        """Return the last state of a session that has a view here."""
        recent = self._views.get(key)
        return None if recent is None else recent.state

    def put(self, key: SessionKey, rows: ViewRows, view: View) -> None:
        """Keep a view in place of the session's earlier one; the oldest views make room."""
        state = self.state_of(key)
        self._drop(key)
        self._views[key] = RecentView(rows, view, state)
        self._tokens += view.tokens
        while self._tokens > _RECENT_TOKENS or len(self._views) > _RECENT_VIEWS:
            self._drop(next(iter(self._views)))

    def put_state(self, key: SessionKey, state: RecentState | None) -> None:
        """Keep the state of a session that has a view here."""
        if recent := self._views.get(key):
            self._views[key] = replace(recent, state=state)

    def _drop(self, key: SessionKey) -> None:
        if dropped := self._views.pop(key, None):
            self._tokens -= dropped.view.tokens


def _shown(row: StoredMessage | Edit) -> ShownMessage:
    if isinstance(row, Edit):
        points_to = tuple((row.ledger or {}).get(POINTS_TO, ()))
        message = message_of(row)
        return ShownMessage(
            row.message, message, row.tokens, row.estimate, row.id, row.depth, points_to
        )
    return ShownMessage(row.id, message_of(row), row.tokens, row.estimate, depth=row.depth)


SettingsLevel: TypeAlias = tuple[str, Mapping[str, Any]]
KeepAmount: TypeAlias = tuple[Measure, float]
"""Size of the newest part that stays verbatim in one run."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session with its settings in force, its model, and its view as rows."""

    rows: ViewRows
    settings: Settings
    model_id: str
    model: ModelConfig | None
    """The model's config; None if it has none."""
    threshold: Threshold
    undo: Undo | None
    """The last undo on the branch."""
    pins: Mapping[str, bool] = field(default_factory=dict)
    """Ids of pinned messages (True) and of released ones (False)."""
    own_prices: Mapping[str, Any] | None = None
    """The prices that the profile states itself."""
    notes: tuple[str, ...] = ()
    """Warnings about the settings, such as a preset that is gone."""


def read_state(
    db: Database,
    key: SessionKey,
    call: Mapping[str, Any],
    static_settings: Sequence[SettingsLevel],
    *,
    tip: str | None = None,
    without: Collection[str] = (),
    earlier: ViewRows | None = None,
) -> SessionState:
    """Return the state of a session; `static_settings` are the levels outside the database.

    `tip` is where the branch ends, the current one if it is None; `without` names snapshots
    to leave out of account; rows of an `earlier` view are not read again.
    """
    settings, fields, model_id, notes = effective_settings(
        db, sessions.get(db, key), call, static_settings
    )
    stored = catalog.model_config(db, model_id)
    model = None if stored is None else stored.within(settings.window)
    return SessionState(
        rows=snapshots.view(
            db,
            key,
            tip,
            share_across_branches=settings.share_across_branches,
            without=without,
            max_tokens=_LARGEST_WINDOW if model is None else model.limits.window,
            earlier=earlier,
        ),
        settings=settings,
        model_id=model_id,
        model=model,
        threshold=threshold_of(fields, stored, settings),
        undo=snapshots.last_undo(db, key, tip),
        pins=sessions.read_pins(db, key),
        own_prices=fields.get("prices"),
        notes=notes,
    )


def read_model(
    db: Database, key: SessionKey | None, static_settings: Sequence[SettingsLevel]
) -> tuple[str, ModelConfig | None]:
    """Return the model of a session, or of a new one, and its config, without reading the view."""
    session = None if key is None else sessions.get(db, key)
    _, _, model_id, _ = effective_settings(db, session, {}, static_settings)
    return model_id, catalog.model_config(db, model_id)


def read_settings(
    db: Database, static_settings: Sequence[SettingsLevel], profile: str | None = None
) -> Settings:
    """Return the settings of all sessions, and those of a profile if one is named."""
    row = catalog.profile(db, profile) if profile is not None else None
    own = _profile_settings(row.fields) if row is not None else {}
    given = (("profile", own), ("database", catalog.settings(db, "global")), *static_settings)
    return resolve(expand_presets(db, given)[0], [])


def _profile_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a profile, with its prompt."""
    return {"prompt": fields.get("prompt"), **fields.get("settings", {})}


def read_session_settings(
    db: Database, key: SessionKey, static_settings: Sequence[SettingsLevel]
) -> Settings:
    """Return the settings in force in a session."""
    settings, _, _, _ = effective_settings(db, sessions.get(db, key), {}, static_settings)
    return settings


def effective_settings(
    db: Database,
    session: SessionRecord | None,
    call: Mapping[str, Any],
    static_settings: Sequence[SettingsLevel],
) -> tuple[Settings, Mapping[str, Any], str, tuple[str, ...]]:
    """Return the settings, the profile's fields, the model, and notes about the settings.

    None is a session that is not there yet.
    """
    profile = catalog.profile(db, session.profile) if session and session.profile else None
    fields = profile.fields if profile is not None else {}
    levels, notes = expand_presets(
        db,
        (
            ("call", call),
            ("session", session.settings if session else {}),
            ("profile", _profile_settings(fields)),
            ("database", catalog.settings(db, "global")),
            *static_settings,
        ),
    )
    ignored: list[str] = []
    settings = resolve(levels, ignored)
    if session is not None and prompt_variant(settings) and _is_in_trial(session.id, settings):
        settings = settings.model_copy(update={"prompt": settings.trial_prompt})
    of_profile = settings.profile_thresholds.get((session and session.profile) or "")
    if of_profile is not None:
        fields = {"threshold": of_profile, **fields}
    named = session.model if session else None
    if settings.sources["model"] == "call":
        named = settings.model
    model = named or model_in(fields) or settings.model
    return settings, fields, model, (*notes, *ignored)


def prompt_variant(settings: Settings) -> Literal["trial", "usual"] | None:
    """Return which prompt a session uses while another one is on trial; None: it takes no part."""
    if settings.trial_prompt is None or settings.sources["prompt"] in {"call", "session"}:
        return None
    return "trial" if settings.prompt == settings.trial_prompt else "usual"


def _is_in_trial(session: str, settings: Settings) -> bool:
    """Return True for a share of the sessions, always the same ones."""
    place = int.from_bytes(blake2b(session.encode(), digest_size=8).digest(), "big")
    return place < settings.trial_share * 2**64


def model_in(fields: Mapping[str, Any]) -> str | None:
    """Return the model of a profile as `provider:model`; None if it names none."""
    if "provider" in fields and "model" in fields:
        return f"{fields['provider']}:{fields['model']}"
    return None


def decide_for(
    state: SessionState,
    model: ModelConfig,
    request: CallOptions,
    same: tuple[ShownMessage, ...] = (),
) -> tuple[View, Decision]:
    """Return the view, and the decision to compress it before it is sent."""
    view = view_of(state.rows, model.tokenizer, state.settings.summary_role, same)
    history = view.tokens + state.rows.skipped_tokens
    load = request.load(history, view.estimate, model.tokenizer)
    # Automatic compression pauses after an undo until the next message of the user.
    undo = state.undo
    is_suspended = undo is not None and not any(
        row.role == "user" for row in state.rows.after if row.depth > undo.depth
    )
    policy = policy_of(state.settings, state.threshold, suspended=is_suspended)
    return view, decide(load, model.limits, policy, max_output=request.max_output)


def keeping(tokens: int | None, messages: int | None) -> KeepAmount | None:
    """Return the retention of one run; None for the usual one."""
    if tokens is not None and messages is not None:
        raise InputError("keep_tokens and keep_messages exclude each other; give one of them")
    if messages is not None:
        return ("messages", messages)
    return None if tokens is None else ("tokens", tokens)


def retention_of(
    state: SessionState, model: ModelConfig, limit: int, keep: KeepAmount | None = None
) -> Retention:
    """Return the retention: the messages that stay verbatim.

    The levels in the order call, session, profile, model, everything that holds for all models.
    If none is set, it is a fifth of `limit` tokens, or the model's recommended tokens if those are
    more.
    """
    if keep is not None:
        return Retention(*keep, state.settings.keep_first)
    usual = max(model.retention_tokens, int(limit * RECENT_MESSAGES_RATIO))
    return retention_policy(state.settings, usual, model.own_value("retention_tokens"))


def threshold_of(
    profile: Mapping[str, Any], model: ModelConfig | None, settings: Settings
) -> Threshold:
    """The levels in the order call, session, profile, model, everything that holds for all models.

    A model has a threshold only if somebody set one.
    """
    share, source = settings.threshold, settings.sources["threshold"]
    of_profile = profile.get("threshold")
    if of_profile in {None, -1} and source == "profile":
        of_profile = share
    found = resolve_threshold(
        call=share if source == "call" else None,
        session=share if source == "session" else None,
        profile=of_profile,
        model=None if model is None else model.own_value("threshold"),
        default=share or DEFAULT_THRESHOLD,
    )
    # What the budget calls the default is whatever holds for all models; settings know whose it is.
    return replace(found, source=source) if found.source == "default" else found


def policy_of(settings: Settings, threshold: Threshold, *, suspended: bool = False) -> Policy:
    """Return the decision; `suspended` while automatic compression pauses."""
    automatic = settings.auto_compress and not suspended
    if settings.trigger_ratio is not None:
        threshold = Threshold(settings.trigger_ratio, settings.sources["trigger_ratio"])
        return Policy(threshold, margin=0.0, automatic=automatic, early_mark=settings.early_mark)
    if settings.max_tokens is not None:
        threshold = replace(threshold, source=settings.sources["max_tokens"])
    return Policy(
        threshold,
        max_tokens=settings.max_tokens,
        automatic=automatic,
        early_mark=settings.early_mark,
    )


@dataclass(frozen=True, slots=True)
class EffectiveThreshold:
    """The threshold of a session, without a system prompt, tools or a pending input."""

    model: str
    tokens: int
    """The tokens of history above which a compression is due: what the lowest guard allows."""
    limit: int
    """The largest history that is possible: the largest input without the safety margin."""
    max_input: int
    share: float | None
    """The share of the limit. None where an absolute number of tokens is set."""
    setting: str
    """The setting: `threshold`, `trigger_ratio` or `max_tokens`."""
    source: str
    """Its source: session, profile, model, database, config file, environment or default."""
    is_automatic: bool
    """False: automatic compression is off, and only the hard limit applies."""
    is_window_guard: bool = False
    """True if the room for a reply in the window runs out before the setting is reached."""
    note: str = ""
    """Settings that were ignored, with reasons."""


def read_effective(
    db: Database, static_settings: Sequence[SettingsLevel], session: SessionKey | None = None
) -> EffectiveThreshold:
    """Return the threshold in force in a session, or in all sessions without their own."""
    record = None if session is None else sessions.get(db, session)
    settings, profile, model_id, _ = effective_settings(db, record, {}, static_settings)
    model = (catalog.model_config(db, model_id) or detect(model_id)).within(settings.window)
    threshold = threshold_of(profile, model, settings)
    decision = decide(Load(0), model.limits, policy_of(settings, threshold))
    setting = "threshold" if settings.max_tokens is None else "max_tokens"
    if settings.trigger_ratio is not None:
        setting = "trigger_ratio"
    source = threshold.source if setting == "threshold" else settings.sources[setting]
    return EffectiveThreshold(
        model=model.id,
        tokens=decision.threshold_tokens,
        limit=decision.limit,
        max_input=model.max_input,
        share=None if setting == "max_tokens" else decision.threshold.share,
        setting=setting,
        source=source,
        is_automatic=settings.auto_compress,
        is_window_guard=decision.guard == "window",
        note=threshold.note,
    )


def find_preset(db: Database, name: str) -> Preset:
    """The preset of that name, built in or saved; `NotFoundError` or `ConfigError` if none is."""
    if name in presets.BUILT_IN:
        return presets.get(name)
    saved = catalog.settings(db, PRESETS)
    if name not in saved:
        names = ", ".join((*presets.BUILT_IN, *sorted(saved)))
        raise NotFoundError(f"no preset {name!r}; available: {names}")
    return presets.read(saved[name])


def expand_presets(
    db: Database, levels: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[list[tuple[str, Mapping[str, Any]]], tuple[str, ...]]:
    """Return the levels of settings with the values of their presets, and notes about presets.

    What a level sets itself wins over its preset. A preset that a call names must be there; one
    that was stored and is gone is passed over with a note.
    """
    expanded: list[tuple[str, Mapping[str, Any]]] = []
    notes: list[str] = []
    for source, given in levels:
        name = given.get("preset")
        if not isinstance(name, str):
            expanded.append((source, given))
            continue
        try:
            preset = find_preset(db, name)
        except EnfoldError as error:
            if source == "call":
                raise
            notes.append(f"the preset of the {source} cannot be used: {error}")
            expanded.append((source, given))
            continue
        own = {ALIASES.get(name, name): value for name, value in given.items()}
        configs = own.get("strategy_config")
        own_configs = configs if isinstance(configs, Mapping) else {}
        both = {preset.strategy: preset.config, **own_configs}
        expanded.append((source, {"strategy": preset.strategy, **own, "strategy_config": both}))
    return expanded, tuple(notes)


def check_changes(db: Database, given: Mapping[str, Any]) -> None:
    """Raise an error if a level cannot be given these settings."""
    changes = change({}, given)
    check_strategies(changes)
    if changes.get("preset") is not None:
        find_preset(db, changes["preset"])


def check_strategies(given: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if settings name a strategy that is not there, or misconfigure one."""
    if given.get("strategy") is not None:
        contract.get(given["strategy"])
    for name, config in (given.get("strategy_config") or {}).items():
        faults = contract.get(name).faults(config)
        if faults:
            raise ConfigError("; ".join(f"strategy_config.{name}.{fault}" for fault in faults))
