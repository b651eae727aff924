-- Version 9. Messages that a person pinned (1), or standing messages that a person released (0).

CREATE TABLE pins (
    session BIGINT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    message TEXT NOT NULL,
    pinned BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session, message)
);
