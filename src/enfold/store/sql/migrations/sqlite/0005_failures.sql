-- Version 5. Failed compressions: number, time and kind of cause, never a text.

CREATE TABLE compression_failures (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    code TEXT NOT NULL,
    automatic INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX compression_failures_by_time ON compression_failures (session, created_at);
