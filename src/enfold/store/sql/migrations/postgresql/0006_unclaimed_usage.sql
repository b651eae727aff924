-- Version 6. What a call used before its session was there, found by the name of the session to come.

ALTER TABLE usage_events ADD COLUMN session_name TEXT;

CREATE INDEX usage_events_unclaimed ON usage_events (namespace, session_name) WHERE session IS NULL;
