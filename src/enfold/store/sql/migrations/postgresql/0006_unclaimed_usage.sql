-- Version 6. Usage of a call that came before its session, found by the name of that session.

ALTER TABLE usage_events ADD COLUMN session_name TEXT;

CREATE INDEX usage_events_unclaimed ON usage_events (namespace, session_name) WHERE session IS NULL;
