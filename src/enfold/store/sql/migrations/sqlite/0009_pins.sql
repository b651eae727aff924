-- Version 9. Messages that a person pinned (1), or standing messages that a person released (0).

CREATE TABLE pins (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    message TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session, message)
) STRICT, WITHOUT ROWID;
