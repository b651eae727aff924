-- Version 1. Times are milliseconds since 1970, JSON is text, content is bytes.
--
-- Only rows that belong to a session refer to it with a foreign key: they are deleted with the session.
-- References to messages have none. Messages are never deleted one by one, and a key from every
-- table that points at a message would make deleting a long session a check per row and table.

CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    profile TEXT,
    model TEXT,
    tip INTEGER,
    settings TEXT NOT NULL,
    blocked TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (namespace, id)
) STRICT;

CREATE INDEX sessions_by_update ON sessions (namespace, updated_at, key);

-- The small columns come first: a walk along the parents then never touches a large content.
-- jump is an ancestor further up, at a depth that follows from the message's own; with it any
-- ancestor is a few steps away, however long the branch (see tree.py).
CREATE TABLE chat_messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    parent INTEGER,
    jump INTEGER,
    depth INTEGER NOT NULL,
    path_tokens INTEGER NOT NULL,
    id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    digest TEXT NOT NULL,
    role TEXT NOT NULL,
    dialect TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    estimate INTEGER NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    client_id TEXT,
    name TEXT,
    created_at INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- The identity comes first, so that a history can be recognised in all sessions of a namespace.
-- session + 0 is how queries ask for this index and no other: as long as a database has no
-- statistics, a planner may think that going through the whole session is as good.
CREATE UNIQUE INDEX chat_messages_by_id ON chat_messages (id, (session + 0));
CREATE INDEX chat_messages_by_session ON chat_messages (session, seq);
CREATE INDEX chat_messages_by_parent ON chat_messages (parent) WHERE parent IS NOT NULL;
CREATE INDEX chat_messages_without_parent ON chat_messages (session, seq) WHERE parent IS NULL;
CREATE INDEX chat_messages_by_client_id ON chat_messages (session, client_id)
    WHERE client_id IS NOT NULL;

-- The last message of every branch.
CREATE TABLE branch_tips (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    message INTEGER NOT NULL,
    PRIMARY KEY (session, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_snapshots (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('title', 'summary', 'memory')),
    message_cutoff INTEGER,
    message_cutoff_id TEXT,
    cutoff_depth INTEGER,
    parent_message INTEGER,
    parent_message_id TEXT,
    parent_depth INTEGER,
    token_count INTEGER,
    tokenizer TEXT,
    previous_id TEXT,
    strategy TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    content_json TEXT NOT NULL,
    manifest TEXT NOT NULL,
    UNIQUE (session, id)
) STRICT;

CREATE INDEX session_snapshots_by_cutoff
    ON session_snapshots (session, kind, cutoff_depth, seq);
CREATE INDEX session_snapshots_by_time ON session_snapshots (session, kind, created_at, seq);

CREATE TABLE snapshot_undos (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    snapshot INTEGER NOT NULL,
    message INTEGER,
    message_depth INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX snapshot_undos_by_snapshot ON snapshot_undos (snapshot);
CREATE INDEX snapshot_undos_by_session ON snapshot_undos (session, seq);

CREATE TABLE message_edits (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    message INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    estimate INTEGER NOT NULL,
    digest TEXT NOT NULL,
    ledger TEXT,
    content BLOB NOT NULL,
    UNIQUE (session, id)
) STRICT;

CREATE TABLE model_configs (
    id TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    max_input_tokens INTEGER NOT NULL,
    max_output_tokens INTEGER NOT NULL,
    default_compression_threshold REAL NOT NULL,
    recommended_retention_tokens INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    correction REAL NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_updated INTEGER NOT NULL
) STRICT;

CREATE INDEX model_configs_by_provider ON model_configs (provider);

CREATE TABLE profiles (
    name TEXT PRIMARY KEY,
    fields TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE settings (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER REFERENCES sessions (key) ON DELETE CASCADE,
    message_id TEXT,
    snapshot_id TEXT,
    kind TEXT NOT NULL,
    profile TEXT,
    model TEXT,
    input_tokens INTEGER,
    cached_tokens INTEGER,
    output_tokens INTEGER,
    cost REAL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX usage_events_by_time ON usage_events (session, created_at);

CREATE TABLE flush_outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    id TEXT NOT NULL UNIQUE,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    holder TEXT,
    error TEXT,
    created_at INTEGER NOT NULL,
    done_at INTEGER,
    UNIQUE (session, message_id, kind)
) STRICT;

CREATE INDEX flush_outbox_by_due ON flush_outbox (due_at, seq) WHERE done_at IS NULL;

CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    session INTEGER REFERENCES sessions (key) ON DELETE CASCADE,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_by_session ON leases (session) WHERE session IS NOT NULL;

-- The text of a message that can be searched and shown as a snippet; the index holds words only.
CREATE TABLE message_texts (
    message INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    text TEXT NOT NULL
) STRICT;

CREATE INDEX message_texts_by_session ON message_texts (session, message);

-- The words are made by words.py, so that both engines find the same; the ascii tokenizer only
-- takes them apart again. scope holds a term for the session and one for the namespace.
CREATE VIRTUAL TABLE message_words USING fts5 (
    scope, words, parts, content = '', tokenize = 'ascii'
);
