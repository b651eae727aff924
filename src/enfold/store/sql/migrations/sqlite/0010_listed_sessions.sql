-- Version 10. The program that sent a session's requests, and the namespace that lists the session.
-- Sessions of proxy clients without an access token are listed in the owner's namespace. Older ones
-- are moved there when a server starts, because their search index changes with it.

ALTER TABLE sessions ADD COLUMN client TEXT;

ALTER TABLE sessions ADD COLUMN listed_in TEXT NOT NULL DEFAULT '';

UPDATE sessions SET listed_in = namespace;

CREATE INDEX sessions_by_listing ON sessions (listed_in, updated_at, key);
