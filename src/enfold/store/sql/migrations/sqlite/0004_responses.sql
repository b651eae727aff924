-- Version 4. Data of replies: response ids that later requests continue, and usage that
-- belongs to a namespace and no session.
--
-- A client that goes on from a response does not send its items again. tip is the identity of the
-- last message that was sent, items are what the model answered; they become messages when a later
-- request refers to them. snapshot is what the provider was sent in place of the whole history,
-- lead an array of the system messages before it, which are no part of a session.

CREATE TABLE responses (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    tip TEXT NOT NULL,
    snapshot TEXT,
    created_at INTEGER NOT NULL,
    lead BLOB NOT NULL,
    UNIQUE (session, id)
) STRICT;

CREATE INDEX responses_by_id ON responses (id);
CREATE INDEX responses_by_time ON responses (created_at);

CREATE TABLE response_items (
    response INTEGER NOT NULL REFERENCES responses (seq) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    id TEXT,
    content BLOB NOT NULL,
    PRIMARY KEY (response, place)
) STRICT;

CREATE INDEX response_items_by_id ON response_items (id) WHERE id IS NOT NULL;

ALTER TABLE usage_events ADD COLUMN namespace TEXT;
