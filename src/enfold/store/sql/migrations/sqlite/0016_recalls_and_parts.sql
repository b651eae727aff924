-- Version 16. Questions to the full history, for the dashboard; and parts of a summary that is not
-- complete yet, so that another attempt goes on where the last one stopped.

CREATE TABLE recalls (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    question TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX recalls_by_time ON recalls (session, created_at);

CREATE TABLE summary_parts (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
