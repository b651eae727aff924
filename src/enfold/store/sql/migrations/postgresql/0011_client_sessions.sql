-- Version 11. The session id that a client sends: it links a conversation to its own compactions.

ALTER TABLE sessions ADD COLUMN client_session TEXT;

CREATE INDEX sessions_by_client ON sessions (client_session, updated_at)
WHERE client_session IS NOT NULL;
