-- Version 12. The messages of an import that has begun and is not finished; NULL for other sessions.

ALTER TABLE sessions ADD COLUMN importing BIGINT;

CREATE INDEX sessions_importing ON sessions (namespace, key) WHERE importing IS NOT NULL;
