-- Version 3. Exchanges that a client did not see: tool calls that the proxy answered itself.
--
-- An exchange follows a message, under the snapshot that applied then; it is put back for as long
-- as that snapshot applies. The message may not be recorded yet, so it goes by its identity.

CREATE TABLE exchanges (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    snapshot TEXT NOT NULL,
    message TEXT NOT NULL,
    shown TEXT NOT NULL,
    dialect TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (session, snapshot, message, shown)
) STRICT;
