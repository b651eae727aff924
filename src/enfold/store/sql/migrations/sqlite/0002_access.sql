-- Version 2. Access tokens of a server, and its audit log.
--
-- Of an access token only the hash is stored. The audit log has ids and counts, never text.

CREATE TABLE access_tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE audit_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    namespace TEXT NOT NULL,
    action TEXT NOT NULL,
    status INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    session TEXT,
    counts TEXT NOT NULL
) STRICT;

CREATE INDEX audit_log_by_namespace ON audit_log (namespace, seq);
